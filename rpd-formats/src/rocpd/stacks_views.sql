-- One view per table of stacks.sql, under the name that readers use.
CREATE VIEW rpd_module AS
    SELECT id, '%guid%' AS guid, %pid% AS pid, path_id, build_id, base, start, "end", seen_from, seen_to
    FROM rpd_module%suffix%;
CREATE VIEW rpd_pycode AS
    SELECT id, '%guid%' AS guid, %pid% AS pid, filename_id, name_id, qualname_id, firstlineno, pyversion, linetable
    FROM rpd_pycode%suffix%;
CREATE VIEW rpd_location AS
    SELECT id, '%guid%' AS guid, kind, module_id, rel_pc, pycode_id, lasti FROM rpd_location%suffix%;
CREATE VIEW rpd_frame AS
    SELECT id, '%guid%' AS guid, location_id, inline_depth, function_id, file_id, line, col, evidence
    FROM rpd_frame%suffix%;
CREATE VIEW rpd_stack AS
    SELECT id, '%guid%' AS guid, parent_id, location_id, depth FROM rpd_stack%suffix%;
CREATE VIEW rpd_api_stack AS
    SELECT api_id, '%guid%' AS guid, stack_id, flags FROM rpd_api_stack%suffix%;
CREATE VIEW rpd_captured_node AS
    SELECT id, '%guid%' AS guid, graph_exec_id, graph_node_id, stack_id FROM rpd_captured_node%suffix%;
CREATE VIEW rpd_stack_frame AS
    SELECT stack_id, '%guid%' AS guid, depth, frame_id FROM rpd_stack_frame%suffix%;
CREATE VIEW rpd_generated_line AS
    SELECT id, '%guid%' AS guid, file_id, first_line, last_line, depth, function_id, source_id, source_line
    FROM rpd_generated_line%suffix%;
CREATE VIEW rpd_generated_file AS
    SELECT file_id, '%guid%' AS guid, text FROM rpd_generated_file%suffix%;
