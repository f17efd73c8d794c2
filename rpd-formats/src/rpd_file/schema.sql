-- The tables of RPD (ROCm/rocmProfileData), schema 3: names and columns are what its tools look for.
CREATE TABLE rocpd_metadata (id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, tag VARCHAR(4096) NOT NULL,
    value VARCHAR(4096) NOT NULL);
CREATE TABLE rocpd_string (id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, string VARCHAR(4096) NOT NULL);
CREATE TABLE rocpd_ustring (id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, string VARCHAR(4096) NOT NULL);
CREATE TABLE rocpd_api (id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, pid INTEGER NOT NULL, tid INTEGER NOT NULL,
    start INTEGER NOT NULL, "end" INTEGER NOT NULL, apiName_id BIGINT NOT NULL REFERENCES rocpd_string (id),
    category_id BIGINT NOT NULL REFERENCES rocpd_string (id), domain_id BIGINT NOT NULL REFERENCES rocpd_string (id),
    args_id BIGINT NOT NULL REFERENCES rocpd_ustring (id));
CREATE TABLE rocpd_copyapi (api_ptr_id BIGINT NOT NULL PRIMARY KEY REFERENCES rocpd_api (id), stream VARCHAR(18) NOT NULL,
    size INTEGER NOT NULL, width INTEGER NOT NULL, height INTEGER NOT NULL, kind INTEGER NOT NULL, dst VARCHAR(18) NOT NULL,
    src VARCHAR(18) NOT NULL, dstDevice INTEGER NOT NULL, srcDevice INTEGER NOT NULL, sync BOOL NOT NULL,
    pinned BOOL NOT NULL);
CREATE TABLE rocpd_kernelapi (api_ptr_id BIGINT NOT NULL PRIMARY KEY REFERENCES rocpd_api (id),
    stream VARCHAR(18) NOT NULL, gridX INTEGER NOT NULL, gridY INTEGER NOT NULL, gridZ INTEGER NOT NULL,
    workgroupX INTEGER NOT NULL, workgroupY INTEGER NOT NULL, workgroupZ INTEGER NOT NULL,
    groupSegmentSize INTEGER NOT NULL, privateSegmentSize INTEGER NOT NULL,
    kernelName_id BIGINT NOT NULL REFERENCES rocpd_string (id));
CREATE TABLE rocpd_op (id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, gpuId INTEGER NOT NULL, queueId INTEGER NOT NULL,
    sequenceId INTEGER NOT NULL, start INTEGER NOT NULL, "end" INTEGER NOT NULL,
    description_id BIGINT NOT NULL REFERENCES rocpd_string (id), opType_id BIGINT NOT NULL REFERENCES rocpd_string (id));
CREATE TABLE rocpd_api_ops (id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    api_id BIGINT NOT NULL REFERENCES rocpd_api (id), op_id BIGINT NOT NULL REFERENCES rocpd_op (id));
CREATE TABLE rocpd_monitor (id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, deviceType VARCHAR(16) NOT NULL,
    deviceId INTEGER NOT NULL, monitorType VARCHAR(16) NOT NULL, start INTEGER NOT NULL, "end" INTEGER NOT NULL,
    value VARCHAR(255) NOT NULL);
CREATE TABLE rocpd_counter (id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, value REAL NOT NULL,
    op_id BIGINT NOT NULL REFERENCES rocpd_op (id), name_id BIGINT NOT NULL REFERENCES rocpd_string (id));
CREATE TABLE rocpd_stackframe (id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    api_ptr_id BIGINT NOT NULL REFERENCES rocpd_api (id), depth INTEGER NOT NULL,
    name_id BIGINT NOT NULL REFERENCES rocpd_string (id));
INSERT INTO rocpd_metadata (tag, value) VALUES ('gpu_stride', '1000'), ('pid_stride', '10000000'), ('schema_version', '3');
INSERT INTO rocpd_string (id, string) VALUES (1, '');
INSERT INTO rocpd_ustring (id, string) VALUES (1, '');
