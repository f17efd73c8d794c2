-- Views to query, made where there are PC samples. They are the same over several recordings.
CREATE VIEW pc_samples AS
    SELECT s.id, s.guid, s."timestamp", s.dispatch_id, y.display_name AS kernel, t.string AS instruction,
        f.string AS file, l.line, s.exec_mask, s.correlation_id, i.code_object_id, i."offset" AS code_object_offset,
        s.hardware & 63 AS chiplet, (s.hardware >> 24) & 31 AS shader_engine, (s.hardware >> 23) & 1 AS shader_array,
        (s.hardware >> 19) & 15 AS cu, (s.hardware >> 13) & 3 AS simd, (s.hardware >> 6) & 127 AS wave_slot,
        s.workgroup_x, s.workgroup_y, s.workgroup_z, (s.state >> 16) & 255 AS wave_in_group,
        CASE WHEN s.state & 1 THEN 'stochastic' ELSE 'host_trap' END AS method,
        CASE WHEN s.state & 1 THEN (s.state >> 1) & 1 END AS wave_issued,
        CASE WHEN s.state & 3 = 3 THEN CASE (s.state >> 8) & 255
            WHEN 0 THEN 'NONE' WHEN 1 THEN 'VALU' WHEN 2 THEN 'MATRIX' WHEN 3 THEN 'SCALAR' WHEN 4 THEN 'TEX'
            WHEN 5 THEN 'LDS' WHEN 6 THEN 'LDS_DIRECT' WHEN 7 THEN 'FLAT' WHEN 8 THEN 'EXPORT'
            WHEN 9 THEN 'MESSAGE' WHEN 10 THEN 'BARRIER' WHEN 11 THEN 'BRANCH_NOT_TAKEN'
            WHEN 12 THEN 'BRANCH_TAKEN' WHEN 13 THEN 'JUMP' WHEN 14 THEN 'OTHER' WHEN 15 THEN 'NO_INST'
            WHEN 16 THEN 'DUAL_VALU' END END AS instruction_type,
        CASE WHEN s.state & 3 = 1 THEN CASE s.snapshot & 15
            WHEN 0 THEN 'NONE' WHEN 1 THEN 'NO_INSTRUCTION_AVAILABLE' WHEN 2 THEN 'ALU_DEPENDENCY'
            WHEN 3 THEN 'WAITCNT' WHEN 4 THEN 'INTERNAL_INSTRUCTION' WHEN 5 THEN 'BARRIER_WAIT'
            WHEN 6 THEN 'ARBITER_NOT_WIN' WHEN 7 THEN 'ARBITER_WIN_EX_STALL' WHEN 8 THEN 'OTHER_WAIT'
            WHEN 9 THEN 'SLEEP_WAIT' END END AS stall_reason,
        CASE WHEN s.state & 1 THEN s.state >> 24 END AS wave_count
    FROM rpd_pc_sample s JOIN rpd_instruction i ON i.id = s.instruction_id AND i.guid = s.guid
        LEFT JOIN rocpd_string t ON t.id = i.text_id AND t.guid = i.guid
        LEFT JOIN rpd_instruction_line l ON l.instruction_id = i.id AND l.guid = i.guid AND l.depth = 0
        LEFT JOIN rocpd_string f ON f.id = l.file_id AND f.guid = l.guid
        LEFT JOIN rocpd_kernel_dispatch k ON k.dispatch_id = s.dispatch_id AND k.guid = s.guid
        LEFT JOIN rocpd_info_kernel_symbol y ON y.id = k.kernel_id AND y.guid = k.guid;
CREATE VIEW pc_instructions AS
    SELECT p.guid, y.display_name AS kernel, i.code_object_id, i."offset" AS code_object_offset,
        t.string AS instruction, f.string AS file, l.line, sum(p.samples) AS samples,
        sum(CASE WHEN p.issue = 'issued' THEN p.samples ELSE 0 END) AS issued,
        sum(CASE WHEN p.issue <> 'issued' THEN p.samples ELSE 0 END) AS stalled,
        nullif(sum(p.lanes), 0) * 1.0 / sum(p.samples) AS lanes
    FROM rpd_pc_total p JOIN rpd_instruction i ON i.id = p.instruction_id AND i.guid = p.guid
        LEFT JOIN rocpd_info_kernel_symbol y ON y.id = p.kernel_id AND y.guid = p.guid
        LEFT JOIN rocpd_string t ON t.id = i.text_id AND t.guid = i.guid
        LEFT JOIN rpd_instruction_line l ON l.instruction_id = i.id AND l.guid = i.guid AND l.depth = 0
        LEFT JOIN rocpd_string f ON f.id = l.file_id AND f.guid = l.guid
    GROUP BY p.guid, p.kernel_id, p.instruction_id
    ORDER BY samples DESC;
CREATE VIEW pc_lines AS
    SELECT guid, kernel, file, line, sum(samples) AS samples, sum(issued) AS issued, sum(stalled) AS stalled,
        sum(lanes * samples) / sum(samples) AS lanes
    FROM pc_instructions
    GROUP BY guid, kernel, file, line
    ORDER BY samples DESC;
