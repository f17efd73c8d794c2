/* What the small program does when it is told word by word. */

static void register_kernel(uint64_t id, const char* name) {
    struct { uint64_t size, kernel, object; const char* name; uint64_t rest[8]; } payload = {32, id, 1, name, {0}};
    call_t call;
    begin(&call, OBJECT, 2, &payload);
    enclosing = call.outer;
}

/* A code object with these bytes in memory, or in a file whose URI this is. */
static void load_object(uint64_t id, const char* content) {
    struct {
        uint64_t size, id, agent, hsa_agent; const char* uri; uint64_t base, bytes; int64_t delta; uint32_t storage, pad;
        uint64_t memory, memory_size;
    } payload = {88, id, 77, 77, content, 0x1000, 0x1000, 0x1000, 1, 0, 0, 0};
    if (strncmp(content, "file:", 5)) {
        payload.uri = "memory://1#offset=0&size=1";
        payload.storage = 2;
        payload.memory = (uint64_t) content;
        payload.memory_size = strlen(content);
    }
    call_t call;
    begin(&call, OBJECT, 1, &payload);
    enclosing = call.outer;
}

#ifndef WITHOUT_COUNTING
static void* launch_once(void* id) {
    launch(GPU0, 3, (uint64_t) id, now());
    return NULL;
}
#endif

/* The signals that each thread has blocked. */
static void print_masks(void) {
    glob_t threads;
    if (glob("/proc/self/task/*/status", 0, NULL, &threads)) exit(87);
    for (size_t i = 0; i < threads.gl_pathc; ++i) {
        char line[128];
        FILE* status = fopen(threads.gl_pathv[i], "r");
        while (status && fgets(line, sizeof line, status))
            if (!strncmp(line, "SigBlk:\t", 8)) fputs(line + 8, stdout);
        if (status) fclose(status);
    }
    globfree(&threads);
}

/* Does what the words say, one after the other; dispatches are numbered from 1. */
static void script(char** words) {
    static uint64_t id;
    static call_t set;
    static int references = 1;
    static struct { uint64_t size, id, value; } stream = {24, 5, 0x1000};
    for (; *words; ++words) {
        long a = 0, b = 0, c = 1;
        char name[256];
        if (sscanf(*words, "kernel:%ld:%255s", &a, name) == 2) {
            register_kernel((uint64_t) a, name);
        } else if (sscanf(*words, "run:%ld:%ld:%ld", &a, &b, &c) >= 2) {
            while (c--) ++id, launch((uint64_t) (77 + b), (uint64_t) a, id, now());
        } else if (sscanf(*words, "object:%ld:%255s", &a, name) == 2) {
            load_object((uint64_t) a, name);
        } else if (sscanf(*words, "samples:%ld:%ld:%ld", &a, &b, &c) == 3) {
            take_samples((uint32_t) a, b, (uint64_t) c);
        } else if (sscanf(*words, "traced:%ld:%ld:%ld", &a, &b, &c) == 3) {
            trace_dispatch((uint64_t) a, (uint64_t) b, (size_t) c);
        } else if (!strcmp(*words, "flushed")) {
            /* By the collector, of its own accord. */
            for (int i = 0; i < 5000 && taken_count; ++i) usleep(1000);
            printf("left %zu\n", taken_count);
        } else if (sscanf(*words, "sleep:%ld", &a) == 1) {
            usleep((useconds_t) a * 1000);
        } else if (sscanf(*words, "push:%255s", name) == 1) {
            roctxRangePushA(strdup(name));
        } else if (sscanf(*words, "mark:%255s", name) == 1) {
            roctxMarkA(name);
        } else if (!strcmp(*words, "pop")) {
            roctxRangePop();
        } else if (!strcmp(*words, "stream")) {
            begin(&set, STREAM, 3, &stream);
        } else if (!strcmp(*words, "unstream")) {
            end(&set);
        } else if (!strcmp(*words, "hsa")) {
            struct { uint64_t size, version, instance; } payload = {24, 10000, 0};
            call_t call = {0};
            call.record.kind = RUNTIME;
            call.record.operation = 1;
            call.record.payload = &payload;
            services[RUNTIME][0].callback(call.record, &call.slots[0], services[RUNTIME][0].data);
        } else if (!strcmp(*words, "hsa-again") || !strcmp(*words, "shut-down")) {
            uint64_t payload[8] = {sizeof payload};
            call_t call;
            int ends = (*words)[0] == 's';
            begin(&call, HSA, ends, payload);
            end(&call);
            references += ends ? -1 : 1;
            if (!references) gpus_gone = 1;
        } else if (!strcmp(*words, "exit")) {
            exit(0);
        } else if (!strcmp(*words, "call")) {
            hip_call(0, 0);
        } else if (!strcmp(*words, "pause") || !strcmp(*words, "resume")) {
            control((*words)[0] == 'r');
        } else if (!strcmp(*words, "masked")) {
            print_masks();
#ifndef WITHOUT_COUNTING
        } else if (!strcmp(*words, "on") || !strcmp(*words, "off")) {
            /* Until recording is switched; somebody else does. */
            int wanted = (*words)[1] == 'n';
            volatile int* is = &active[services[DISPATCH][0].context.handle];
            for (int i = 0; i < 20000 && *is != wanted; ++i) usleep(1000);
            if (*is != wanted) exit(85);
        } else if (!strcmp(*words, "meet")) {
            pthread_t threads[2];
            counting_config_slow = 1;
            for (long i = 0; i < 2; ++i) pthread_create(&threads[i], NULL, launch_once, (void*) (i + 1));
            for (int i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
#endif
        } else if (!strcmp(*words, "fork")) {
            uint64_t before = now();
            fflush(stdout);
            pid_t child = fork();
            if (child == 0) {
                /* Work that the parent had started ends here as well. */
                launch(77, 3, 99, before);
                continue;
            }
            waitpid(child, NULL, 0);
            return;
        } else {
            exit(86);
        }
    }
}
