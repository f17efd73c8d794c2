/* no-gpu and no-gpu-linked: programs that never touch a GPU; the second is linked with the HIP
 * runtime all the same, as programs are that use a GPU only where there is one. */
#include <stdio.h>

int main(void) {
    puts("ok");
    return 0;
}
