// Operators of PyTorch that call HIP in forward and backward passes, and that keep what PyTorch itself knows of the stack
// of each such call.

#include <ATen/core/LegacyTypeDispatch.h>
#include <dlfcn.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/profiler/combined_traceback.h>
#include <torch/csrc/profiler/unwind/unwind.h>
#include <torch/library.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <iomanip>
#include <mutex>

namespace {

struct Hip {
    int (*allocate)(void **, size_t);
    int (*release)(void *);
    int (*last_error)();

    Hip() {
        void *library = dlopen("libamdhip64.so.6", RTLD_NOW);
        TORCH_CHECK(library != nullptr, dlerror());
        allocate = reinterpret_cast<int (*)(void **, size_t)>(dlsym(library, "hipMalloc"));
        release = reinterpret_cast<int (*)(void *)>(dlsym(library, "hipFree"));
        last_error = reinterpret_cast<int (*)()>(dlsym(library, "hipGetLastError"));
        TORCH_CHECK(allocate && release && last_error, "libamdhip64.so.6 lacks a function");
    }
};

const Hip &hip() {
    static const Hip loaded;
    return loaded;
}

/// A call and PyTorch's view of it.
struct Taken {
    /// A forked process has the calls of its parent as well.
    pid_t process;
    /// Size that it allocates; no two calls of a process have the same.
    size_t size;
    /// Return addresses, innermost first; the first is in PyTorch's unwinder, the second in `call_hip`.
    std::vector<void *> native;
    std::shared_ptr<torch::CapturedTraceback> python;
};

std::mutex mutex;
std::vector<Taken> all_taken;
std::atomic<size_t> calls{0};

__attribute__((noinline)) void call_hip() {
    Taken taken;
    taken.process = getpid();
    taken.size = 4096 + 16 * calls++;
    void *place = nullptr;
    hip().allocate(&place, taken.size);
    hip().release(place);
    taken.native = torch::unwind::unwind();
    taken.python = torch::CapturedTraceback::gather(true, true, false);
    std::lock_guard<std::mutex> guard(mutex);
    all_taken.push_back(std::move(taken));
}

at::Tensor call(const at::Tensor &value) {
    call_hip();
    return value.clone();
}

at::Tensor call_backward(const at::Tensor &gradient) {
    call_hip();
    return gradient.clone();
}

at::Tensor dispatched(const char *name, const at::Tensor &value) {
    auto handle = c10::Dispatcher::singleton().findSchemaOrThrow(name, "");
    return handle.typed<at::Tensor(const at::Tensor &)>().call(value);
}

struct Call : torch::autograd::Function<Call> {
    static at::Tensor forward(torch::autograd::AutogradContext *, const at::Tensor &value) {
        at::AutoDispatchBelowADInplaceOrView guard;
        return dispatched("rpd_test::call", value);
    }

    static torch::autograd::variable_list backward(torch::autograd::AutogradContext *,
                                                   torch::autograd::variable_list gradients) {
        return {dispatched("rpd_test::call_backward", gradients[0])};
    }
};

at::Tensor call_with_gradient(const at::Tensor &value) { return Call::apply(value); }

/// Writes the calls of this process so far as JSON.
void dump(const std::string &path) {
    std::lock_guard<std::mutex> guard(mutex);
    std::vector<const Taken *> own;
    std::vector<torch::CapturedTraceback *> tracebacks;
    for (const Taken &taken : all_taken) {
        if (taken.process != getpid()) continue;
        own.push_back(&taken);
        tracebacks.push_back(taken.python.get());
    }
    const auto symbolized = torch::symbolize(tracebacks);
    std::ofstream out(path);
    out << "[";
    for (size_t index = 0; index < own.size(); ++index) {
        out << (index ? ",\n" : "") << "{\"size\": " << own[index]->size << ", \"native\": [";
        const char *separator = "";
        for (void *address : own[index]->native) {
            out << separator << reinterpret_cast<uintptr_t>(address);
            separator = ", ";
        }
        out << "], \"python\": [";
        separator = "";
        for (uint64_t number : symbolized.tracebacks[index]) {
            const auto &frame = symbolized.all_frames[number];
            out << separator << "[" << std::quoted(frame.filename) << ", " << frame.lineno << ", "
                << std::quoted(frame.funcname) << "]";
            separator = ", ";
        }
        out << "]}";
    }
    out << "]\n";
}

template <typename Work>
double nanoseconds(int64_t count, Work work) {
    const auto begin = std::chrono::steady_clock::now();
    for (int64_t index = 0; index < count; ++index) work();
    const auto end = std::chrono::steady_clock::now();
    return std::chrono::duration<double, std::nano>(end - begin).count() / count;
}

/// Cost of one call of HIP.
double cost_of_call(int64_t count) {
    return nanoseconds(count, [] { hip().last_error(); });
}

/// Cost of one capture by PyTorch.
double cost_of_gather(int64_t count) {
    return nanoseconds(count, [] { torch::CapturedTraceback::gather(true, true, true); });
}

TORCH_LIBRARY(rpd_test, library) {
    library.def("call(Tensor value) -> Tensor");
    library.def("call_backward(Tensor gradient) -> Tensor");
    library.def("dump", &dump);
    library.def("cost_of_call", &cost_of_call);
    library.def("cost_of_gather", &cost_of_gather);
}

TORCH_LIBRARY_IMPL(rpd_test, CompositeExplicitAutograd, library) {
    library.impl("call", &call);
    library.impl("call_backward", &call_backward);
}

TORCH_LIBRARY_IMPL(rpd_test, Autograd, library) { library.impl("call", &call_with_gradient); }

}  // namespace
