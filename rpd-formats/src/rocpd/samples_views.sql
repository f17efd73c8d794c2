-- One view per table of samples.sql, under the name that readers use.
CREATE VIEW rpd_pc_sampling AS
    SELECT id, '%guid%' AS guid, agent_id, method, unit, "interval" FROM rpd_pc_sampling%suffix%;
CREATE VIEW rpd_code_bytes AS
    SELECT id, '%guid%' AS guid, content, bytes FROM rpd_code_bytes%suffix%;
CREATE VIEW rpd_code_object AS
    SELECT id, '%guid%' AS guid, content FROM rpd_code_object%suffix%;
CREATE VIEW rpd_instruction AS
    SELECT id, '%guid%' AS guid, code_object_id, "offset", length, text_id, function_id FROM rpd_instruction%suffix%;
CREATE VIEW rpd_instruction_line AS
    SELECT id, '%guid%' AS guid, instruction_id, depth, function_id, file_id, line, col
    FROM rpd_instruction_line%suffix%;
CREATE VIEW rpd_source AS
    SELECT id, '%guid%' AS guid, path_id, text FROM rpd_source%suffix%;
CREATE VIEW rpd_pc_sample AS
    SELECT id, '%guid%' AS guid, "timestamp", instruction_id, dispatch_id, correlation_id, exec_mask, hardware,
        workgroup_x, workgroup_y, workgroup_z, state, region_id, snapshot, memory
    FROM rpd_pc_sample%suffix%;
CREATE VIEW rpd_pc_total AS
    SELECT id, '%guid%' AS guid, kernel_id, instruction_id, issue, samples, lanes, waves FROM rpd_pc_total%suffix%;
CREATE VIEW rpd_pc_replicate AS
    SELECT id, '%guid%' AS guid, kernel_id, instruction_id, counts FROM rpd_pc_replicate%suffix%;
