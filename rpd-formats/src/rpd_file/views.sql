-- The indices and views that RPD's tools and playbooks use.
CREATE INDEX rpd_string_string ON rocpd_string (string);
CREATE INDEX rpd_ustring_string ON rocpd_ustring (string);
CREATE INDEX rpd_api_ops_api ON rocpd_api_ops (api_id);
CREATE INDEX rpd_api_ops_op ON rocpd_api_ops (op_id);
CREATE INDEX rpd_stackframe_api ON rocpd_stackframe (api_ptr_id);
CREATE VIEW api AS
    SELECT a.id, a.pid, a.tid, a.start, a."end", d.string AS domain, c.string AS category, n.string AS apiName,
        u.string AS args
    FROM rocpd_api a
        JOIN rocpd_string d ON d.id = a.domain_id
        JOIN rocpd_string c ON c.id = a.category_id
        JOIN rocpd_string n ON n.id = a.apiName_id
        JOIN rocpd_ustring u ON u.id = a.args_id;
CREATE VIEW op AS
    SELECT o.id, o.gpuId, o.queueId, o.sequenceId, o.start, o."end", d.string AS description, t.string AS opType
    FROM rocpd_op o JOIN rocpd_string d ON d.id = o.description_id JOIN rocpd_string t ON t.id = o.opType_id;
CREATE VIEW busy AS
    SELECT g.gpuId, g.GpuTime, w.WallTime, g.GpuTime * 1.0 / w.WallTime AS Busy
    FROM (SELECT gpuId, sum("end" - start) AS GpuTime FROM rocpd_op GROUP BY gpuId) g
        CROSS JOIN (SELECT max("end") - min(start) AS WallTime FROM rocpd_op) w;
CREATE VIEW top AS
    SELECT n.string AS Name, count(*) AS TotalCalls, sum(o."end" - o.start) / 1000 AS TotalDuration_us,
        sum(o."end" - o.start) / count(*) / 1000.0 AS Ave_us,
        sum(o."end" - o.start) * 100.0 / (SELECT sum("end" - start) FROM rocpd_op) AS Percentage
    FROM (SELECT CASE WHEN d.string = '' THEN o.opType_id ELSE o.description_id END AS name_id, o.start, o."end"
            FROM rocpd_op o JOIN rocpd_string d ON d.id = o.description_id) o
        JOIN rocpd_string n ON n.id = o.name_id
    GROUP BY n.string
    ORDER BY TotalDuration_us DESC;
CREATE VIEW kernel AS
    SELECT o.id, o.gpuId, o.queueId, o.sequenceId, o.start, o."end", o."end" - o.start AS duration, k.stream, k.gridX,
        k.gridY, k.gridZ, k.workgroupX, k.workgroupY, k.workgroupZ, k.groupSegmentSize, k.privateSegmentSize,
        n.string AS kernelName
    FROM rocpd_api_ops x
        JOIN rocpd_op o ON o.id = x.op_id
        JOIN rocpd_kernelapi k ON k.api_ptr_id = x.api_id
        JOIN rocpd_string n ON n.id = k.kernelName_id;
CREATE VIEW copy AS
    SELECT a.id, a.pid, a.tid, a.start, a."end", n.string AS apiName, c.stream, c.size, c.width, c.height, c.kind, c.dst,
        c.src, c.dstDevice, c.srcDevice, c.sync, c.pinned
    FROM rocpd_copyapi c JOIN rocpd_api a ON a.id = c.api_ptr_id JOIN rocpd_string n ON n.id = a.apiName_id;
CREATE VIEW copyop AS
    SELECT o.id, o.gpuId, o.queueId, o.sequenceId, o.start, o."end", o."end" - o.start AS duration, c.stream, c.size,
        c.width, c.height, c.kind, c.dst, c.src, c.dstDevice, c.srcDevice, c.sync, c.pinned, n.string AS apiName
    FROM rocpd_api_ops x
        JOIN rocpd_op o ON o.id = x.op_id
        JOIN rocpd_copyapi c ON c.api_ptr_id = x.api_id
        JOIN rocpd_api a ON a.id = x.api_id
        JOIN rocpd_string n ON n.id = a.apiName_id;
CREATE VIEW stackframe AS
    SELECT a.id, n.string, f.depth, t.string
    FROM rocpd_stackframe f
        JOIN rocpd_api a ON a.id = f.api_ptr_id
        JOIN rocpd_string n ON n.id = a.apiName_id
        JOIN rocpd_string t ON t.id = f.name_id;
CREATE VIEW napi AS
    SELECT a.id, a.pid / m.value AS node, a.pid % m.value AS pid, a.tid % m.value AS tid, a.start, a."end",
        d.string AS domain, c.string AS category, n.string AS apiName, u.string AS args
    FROM rocpd_api a
        JOIN rocpd_metadata m ON m.tag = 'pid_stride'
        JOIN rocpd_string d ON d.id = a.domain_id
        JOIN rocpd_string c ON c.id = a.category_id
        JOIN rocpd_string n ON n.id = a.apiName_id
        JOIN rocpd_ustring u ON u.id = a.args_id;
CREATE VIEW nop AS
    SELECT o.id, o.gpuId / m.value AS node, o.gpuId % m.value AS gpuId, o.queueId % m.value AS queueId, o.sequenceId,
        o.start, o."end", d.string AS description, t.string AS opType
    FROM rocpd_op o
        JOIN rocpd_metadata m ON m.tag = 'gpu_stride'
        JOIN rocpd_string d ON d.id = o.description_id
        JOIN rocpd_string t ON t.id = o.opType_id;
