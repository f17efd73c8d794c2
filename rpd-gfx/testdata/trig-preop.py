#!/usr/bin/env python3
"""Writes trig-preop.csv: value, segment and result of v_trig_preop_f64 as LLVM's optimiser folds it (OPT, by default opt-19)."""
import os
import pathlib
import re
import struct
import subprocess

values = [1.0, -3.5, 0.0, 1e-300, 5e-324, 2.0**53, 2.0**54, 2.0**55, 1e18, -1e22, 1.2345e40, 7e100, 3e200, -1e250, 2.0**944,
          2.0**945, 2.0**946, 1e300, 1.7976931348623157e308, float("inf")]
cases = [(struct.unpack("<Q", struct.pack("<d", value))[0], segment) for value in values
         for segment in (0, 1, 2, 3, 7, 12, 19, 20, 21, 22, 23, 31)]
source = "declare double @llvm.amdgcn.trig.preop.f64(double, i32)\n"
for number, (bits, segment) in enumerate(cases):
    source += f"define double @f{number}() {{\n  %r = call double @llvm.amdgcn.trig.preop.f64(double 0x{bits:016X}, i32 {segment})\n  ret double %r\n}}\n"
command = [os.environ.get("OPT", "opt-19"), "-passes=instcombine", "-mtriple=amdgcn-amd-amdhsa", "-mcpu=gfx90a", "-S"]
text = subprocess.run(command, input=source, capture_output=True, text=True, check=True).stdout
rows = ["value,segment,result"]
for number, (bits, segment) in enumerate(cases):
    result = re.search(rf"@f{number}\(\).*?ret double (\S+)", text, re.S).group(1)
    if result.startswith("0x"):
        folded = int(result, 16)
    else:
        folded = struct.unpack("<Q", struct.pack("<d", float(result)))[0]
    rows.append(f"{bits:016x},{segment},{folded:016x}")
pathlib.Path(__file__).with_name("trig-preop.csv").write_text("\n".join(rows) + "\n")
