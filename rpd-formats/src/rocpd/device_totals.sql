-- Tables of light recordings: what all dispatches and copies add up to, of which the other tables hold the latest. Readers use
-- the rpd_* views of device_totals_views.sql, which add `guid`.

-- The dispatches of a kernel (`kernel_id`), the copies in a direction (`operation_id`, a rocpd_string), or, with neither, the
-- dispatches of all kernels without a row. Times are in nanoseconds; `spread` is the sum of the squared distances of durations
-- from their mean.
CREATE TABLE rpd_device_total%suffix% (
    id INTEGER NOT NULL PRIMARY KEY,
    kernel_id INTEGER,
    operation_id INTEGER,
    count BIGINT NOT NULL,
    total BIGINT NOT NULL,
    min BIGINT NOT NULL,
    max BIGINT NOT NULL,
    spread REAL NOT NULL,
    bytes BIGINT NOT NULL,
    first BIGINT NOT NULL,
    last BIGINT NOT NULL
);
-- How many durations are at least `duration` and less than that of the next bucket, for buckets that have some.
CREATE TABLE rpd_device_duration%suffix% (
    id INTEGER NOT NULL PRIMARY KEY,
    total_id INTEGER NOT NULL REFERENCES rpd_device_total%suffix% (id) ON UPDATE CASCADE,
    bucket INTEGER NOT NULL,
    duration BIGINT NOT NULL,
    count BIGINT NOT NULL
);
