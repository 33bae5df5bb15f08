/* environment: who this process is, as the environment has it. */
#include "check.h"

int main(void)
{
    sfm_endpoint *self;

    if (sfm_join(NULL, NULL, SFM_ANY_RANK, &self) != SFM_OK) {
        printf("%s\n", sfm_error_text());
        return 1;
    }
    printf("%s %d %d\n", sfm_name(self), sfm_rank(self), sfm_size(self));
    return 0;
}
