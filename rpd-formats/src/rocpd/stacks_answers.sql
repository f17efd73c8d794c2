-- What stacks cost, for databases with stacks whose symbols were looked up. Times are in nanoseconds; a record
-- that ends before it begins, or lasts longer than ten years, has none. The innermost frame is
-- that of the program: the frame that stands for the call is none.

-- By function: calls made in it and time in them (`self`), and those made in it or below (`total`).
CREATE VIEW stack_top AS
    WITH cost AS (
        SELECT a.guid, a.stack_id, count(*) AS calls,
            sum(CASE WHEN r."end" - r.start BETWEEN 0 AND 315360000000000000 THEN r."end" - r.start ELSE 0 END) AS duration
        FROM rpd_api_stack a JOIN rocpd_region r ON r.event_id = a.api_id AND r.guid = a.guid
        GROUP BY a.guid, a.stack_id
    ), frame AS (
        SELECT k.guid, k.stack_id, min(k.depth) AS depth, f.function_id, f.file_id
        FROM rpd_stack_frame k JOIN rpd_frame f ON f.id = k.frame_id AND f.guid = k.guid
        WHERE coalesce(f.evidence, '') <> 'api'
        GROUP BY k.guid, k.stack_id, f.function_id, f.file_id
    ), innermost AS (
        SELECT guid, stack_id, min(depth) AS depth FROM frame GROUP BY guid, stack_id
    )
    SELECT n.string AS function, s.string AS file,
        sum(CASE WHEN f.depth = i.depth THEN c.calls ELSE 0 END) AS self_calls, sum(c.calls) AS total_calls,
        sum(CASE WHEN f.depth = i.depth THEN c.duration ELSE 0 END) AS self_duration, sum(c.duration) AS total_duration
    FROM frame f
        JOIN innermost i ON i.stack_id = f.stack_id AND i.guid = f.guid
        JOIN cost c ON c.stack_id = f.stack_id AND c.guid = f.guid
        LEFT JOIN rocpd_string n ON n.id = f.function_id AND n.guid = f.guid
        LEFT JOIN rocpd_string s ON s.id = f.file_id AND s.guid = f.guid
    GROUP BY n.string, s.string
    ORDER BY self_duration DESC, total_duration DESC;
-- By traced function and the place that called it: the innermost frame of the program that is not in a header of the
-- runtime. `gpu_duration` is that of kernels and copies with the correlation id of the call.
CREATE VIEW stack_site AS
    WITH work AS (
        SELECT guid, event_id, "end" - start AS duration FROM rocpd_kernel_dispatch
        WHERE "end" - start BETWEEN 0 AND 315360000000000000
        UNION ALL
        SELECT guid, event_id, "end" - start FROM rocpd_memory_copy WHERE "end" - start BETWEEN 0 AND 315360000000000000
    ), asked AS (
        SELECT e.guid, e.stack_id AS correlation, sum(w.duration) AS duration
        FROM work w JOIN rocpd_event e ON e.id = w.event_id AND e.guid = w.guid
        GROUP BY e.guid, e.stack_id
    ), cost AS (
        SELECT a.guid, a.stack_id, r.name_id, count(*) AS calls,
            sum(CASE WHEN r."end" - r.start BETWEEN 0 AND 315360000000000000 THEN r."end" - r.start ELSE 0 END) AS duration,
            coalesce(sum(g.duration), 0) AS gpu_duration
        FROM rpd_api_stack a
            JOIN rocpd_region r ON r.event_id = a.api_id AND r.guid = a.guid
            JOIN rocpd_event e ON e.id = a.api_id AND e.guid = a.guid
            LEFT JOIN asked g ON g.correlation = e.stack_id AND g.guid = a.guid
        GROUP BY a.guid, a.stack_id, r.name_id
    ), innermost AS (
        SELECT k.guid, k.stack_id, min(k.depth) AS depth
        FROM rpd_stack_frame k
            JOIN rpd_frame f ON f.id = k.frame_id AND f.guid = k.guid
            LEFT JOIN rocpd_string s ON s.id = f.file_id AND s.guid = f.guid
        WHERE coalesce(f.evidence, '') <> 'api' AND coalesce(s.string, '') NOT LIKE '%/include/hip/%'
        GROUP BY k.guid, k.stack_id
    )
    SELECT c.guid, a.string AS api, n.string AS function, s.string AS file, f.line, sum(c.calls) AS calls,
        count(DISTINCT c.stack_id) AS stacks, sum(c.duration) AS duration, sum(c.gpu_duration) AS gpu_duration
    FROM cost c
        JOIN rocpd_string a ON a.id = c.name_id AND a.guid = c.guid
        LEFT JOIN innermost i ON i.stack_id = c.stack_id AND i.guid = c.guid
        LEFT JOIN rpd_stack_frame k ON k.stack_id = i.stack_id AND k.depth = i.depth AND k.guid = i.guid
        LEFT JOIN rpd_frame f ON f.id = k.frame_id AND f.guid = k.guid
        LEFT JOIN rocpd_string n ON n.id = f.function_id AND n.guid = f.guid
        LEFT JOIN rocpd_string s ON s.id = f.file_id AND s.guid = f.guid
    GROUP BY c.guid, a.string, n.string, s.string, f.line
    ORDER BY duration DESC;
-- The sites of the recording that began last beside those of the one that began first. No rows with one recording.
CREATE VIEW stack_diff AS
    WITH recording AS (
        SELECT guid, start FROM rocpd_info_process WHERE guid IN (SELECT guid FROM rpd_api_stack)
    ), ends AS (
        SELECT (SELECT guid FROM recording ORDER BY start, guid LIMIT 1) AS first,
            (SELECT guid FROM recording ORDER BY start DESC, guid DESC LIMIT 1) AS last
    ), side AS (
        SELECT t.guid = e.last AS later, t.api, t.function, t.file, t.line, t.calls, t.duration, t.gpu_duration
        FROM stack_site t JOIN ends e ON t.guid IN (e.first, e.last)
        WHERE e.first <> e.last
    )
    SELECT api, function, file, line,
        sum(CASE later WHEN 0 THEN calls ELSE 0 END) AS calls_before, sum(calls * later) AS calls_after,
        sum(CASE later WHEN 0 THEN duration ELSE 0 END) AS duration_before, sum(duration * later) AS duration_after,
        sum(CASE later WHEN 0 THEN gpu_duration ELSE 0 END) AS gpu_duration_before,
        sum(gpu_duration * later) AS gpu_duration_after
    FROM side
    GROUP BY api, function, file, line
    ORDER BY abs(sum(duration * later) - sum(CASE later WHEN 0 THEN duration ELSE 0 END)) DESC;
