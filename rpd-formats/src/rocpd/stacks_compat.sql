-- Views under the names of RPD (ROCm/rocmProfileData), over the tables of stacks.sql, so that SQL written for its files runs
-- here. Ids of texts that exist only as parts of others count from 2^52 (frames) and from 2^54 (arguments); both are found in
-- rocpd_string, where the guide's SQL looks for them, and arguments in rocpd_ustring, too, where schema 3 of RPD has them.
-- %session% is 0 for a database with one recording. Where there are several they are numbered from 1, as RPD numbers the
-- processes in a file: 2^32 times the number is added to ids of calls, and 2^56 times the number to ids of texts.

-- A frame without its place in a stack: 18 characters of address or kind, and what follows. `api` is set in the frame that
-- stands for the call itself.
CREATE VIEW rpd_frame_text AS
    SELECT f.id AS frame_id, '%guid%' AS guid,
        CASE
            WHEN f.evidence = 'source' THEN '(source)          '
            WHEN l.kind <> 'python' AND f.inline_depth < (SELECT max(o.inline_depth) FROM rpd_frame%suffix% o WHERE o.location_id = f.location_id
                AND f.inline_depth >= 0) THEN '(inlined)         '
            WHEN l.kind IN ('native', 'guessed', 'jit') AND f.inline_depth <> -2 THEN '0x' || %address%
            ELSE substr('(' || CASE
                WHEN f.evidence = 'api' THEN 'api'
                WHEN l.kind LIKE '%-marker' THEN substr(l.kind, 1, length(l.kind) - 7)
                ELSE l.kind END || ')                  ', 1, 18)
        END AS head,
        CASE l.kind
            WHEN 'gap-marker' THEN ' frames left out'
            WHEN 'truncated-marker' THEN ' the stack could not be followed further'
            WHEN 'unplaced-marker' THEN ' the Python frames above have no place among the native ones'
            ELSE coalesce(' in ' || n.string || CASE WHEN f.evidence = 'api' THEN '()' ELSE '' END, '')
                || coalesce(' at ' || coalesce(s.string || coalesce(':' || f.line || coalesce(':' || f.col, ''), ''),
                    p.string, CASE l.kind WHEN 'jit' THEN '[anon]' END), '')
        END AS tail
    FROM rpd_frame%suffix% f
        JOIN rpd_location%suffix% l ON l.id = f.location_id
        LEFT JOIN rpd_module%suffix% m ON m.id = l.module_id
        LEFT JOIN rocpd_string%suffix% p ON p.id = m.path_id
        LEFT JOIN rocpd_string%suffix% n ON n.id = f.function_id
        LEFT JOIN rocpd_string%suffix% s ON s.id = f.file_id;
-- The texts of frames in stacks, each once: its number is padded to the width of the largest in the stack.
CREATE VIEW rpd_stack_text AS
    SELECT 4503599627370496 + 72057594037927936 * %session% + x.frame_id * 1048576 + x.depth * 8 + x.width AS id, '%guid%' AS guid,
        '#' || substr(x.depth || '       ', 1, x.width) || ' ' || t.head || t.tail AS string
    FROM (SELECT DISTINCT k.frame_id, k.depth,
                length((SELECT max(o.depth) FROM rpd_stack_frame%suffix% o WHERE o.stack_id = k.stack_id)) AS width
            FROM rpd_stack_frame%suffix% k) x
        JOIN rpd_frame_text t ON t.frame_id = x.frame_id;
CREATE VIEW rocpd_api AS
    SELECT r.event_id + 4294967296 * %session% AS id, %pid% AS pid, t.tid, r.start, r."end",
        r.name_id + 72057594037927936 * %session% AS apiName_id,
        18014398509481984 + 72057594037927936 * %session% AS category_id,
        e.category_id + 72057594037927936 * %session% AS domain_id,
        18014398509481984 + 72057594037927936 * %session% + r.event_id AS args_id
    FROM rocpd_region%suffix% r
        JOIN rocpd_event%suffix% e ON e.id = r.event_id
        JOIN rocpd_info_thread%suffix% t ON t.id = r.tid
    UNION ALL
    SELECT m.event_id + 4294967296 * %session%, %pid%, t.tid, m.timestamp, m.timestamp,
        k.name_id + 72057594037927936 * %session%, 18014398509481984 + 72057594037927936 * %session%,
        e.category_id + 72057594037927936 * %session%, 18014398509481984 + 72057594037927936 * %session% + m.event_id
    FROM rocpd_sample%suffix% m
        JOIN rocpd_track%suffix% k ON k.id = m.track_id
        JOIN rocpd_event%suffix% e ON e.id = m.event_id
        JOIN rocpd_info_thread%suffix% t ON t.id = k.tid;
-- As RPD, the arguments of copies and launches are left out.
CREATE VIEW rocpd_ustring AS
    SELECT 18014398509481984 + 72057594037927936 * %session% + r.event_id AS id, coalesce(CASE
        WHEN n.string LIKE 'hipMemcpy%' OR n.string LIKE '%Launch%' THEN ''
        WHEN e.extdata <> '{}' THEN json_extract(e.extdata, '$.message')
        ELSE (SELECT group_concat(argument, ' | ') FROM (
            SELECT a.name || '=' || CASE
                WHEN a.type = 'unsigned long' AND a.name LIKE 'size%'
                    THEN '0x' || coalesce(nullif(ltrim(%size%, '0'), ''), '0')
                ELSE a.value END AS argument
            FROM rocpd_arg%suffix% a WHERE a.event_id = r.event_id ORDER BY a.position))
        END, '') AS string
    FROM (SELECT event_id, name_id FROM rocpd_region%suffix%
            UNION ALL
            SELECT m.event_id, k.name_id FROM rocpd_sample%suffix% m JOIN rocpd_track%suffix% k ON k.id = m.track_id) r
        JOIN rocpd_event%suffix% e ON e.id = r.event_id
        LEFT JOIN rocpd_string%suffix% n ON n.id = r.name_id
    UNION ALL SELECT 18014398509481984 + 72057594037927936 * %session%, '';
CREATE VIEW rocpd_stackframe AS
    SELECT (a.api_id + 4294967296 * %session%) * 1048576 + k.depth AS id, a.api_id + 4294967296 * %session% AS api_ptr_id,
        k.depth, 4503599627370496 + 72057594037927936 * %session% + k.frame_id * 1048576 + k.depth * 8
            + length((SELECT max(o.depth) FROM rpd_stack_frame%suffix% o WHERE o.stack_id = a.stack_id)) AS name_id
    FROM rpd_api_stack%suffix% a JOIN rpd_stack_frame%suffix% k ON k.stack_id = a.stack_id;
DROP VIEW rocpd_string;
CREATE VIEW rocpd_string AS SELECT id, '%guid%' AS guid, string FROM rocpd_string%suffix%
    UNION ALL SELECT id, guid, string FROM rpd_stack_text UNION ALL SELECT id, '%guid%', string FROM rocpd_ustring;
CREATE VIEW rocpd_stackstrings AS
    SELECT r.id * 1048576 + k.depth AS id, n.string AS hip_api, u.string AS args, k.depth,
        '#' || substr(k.depth || '       ', 1, length((SELECT max(o.depth) FROM rpd_stack_frame%suffix% o
            WHERE o.stack_id = a.stack_id))) || ' ' || t.head || t.tail AS frame
    FROM rpd_api_stack%suffix% a
        JOIN rpd_stack_frame%suffix% k ON k.stack_id = a.stack_id
        JOIN rpd_frame_text t ON t.frame_id = k.frame_id
        JOIN rocpd_api r ON r.id = a.api_id + 4294967296 * %session%
        JOIN rocpd_string%suffix% n ON n.id = r.apiName_id - 72057594037927936 * %session%
        JOIN rocpd_ustring u ON u.id = r.args_id;
CREATE VIEW stackframe AS
    SELECT r.id, n.string, k.depth, k.frame AS "string:1"
    FROM rocpd_stackstrings k JOIN rocpd_api r ON r.id = k.id / 1048576
        JOIN rocpd_string%suffix% n ON n.id = r.apiName_id - 72057594037927936 * %session%;
