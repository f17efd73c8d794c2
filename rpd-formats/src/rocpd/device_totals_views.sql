-- One view per table of device_totals.sql, under the name that readers use.
CREATE VIEW rpd_device_total AS
    SELECT id, '%guid%' AS guid, kernel_id, operation_id, count, total, min, max, spread, bytes, first, last
    FROM rpd_device_total%suffix%;
CREATE VIEW rpd_device_duration AS
    SELECT id, '%guid%' AS guid, total_id, bucket, duration, count FROM rpd_device_duration%suffix%;
