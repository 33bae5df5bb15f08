// whole WORLD: the same header in C++, and threads that share one endpoint.
#include <sfm.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace {

void done(int code)
{
    if (code != SFM_OK) {
        std::fprintf(stderr, "%s\n", sfm_error_text());
        std::exit(9);
    }
}

struct Release {
    void operator()(sfm_message *message) const { sfm_release(message); }
};

struct Free {
    void operator()(sfm_packet *packet) const { sfm_packet_free(packet); }
};

using Message = std::unique_ptr<sfm_message, Release>;
using Packet = std::unique_ptr<sfm_packet, Free>;

constexpr int threads = 4, messages = 500;

void sends(sfm_endpoint *self, int tag)
{
    Packet packet{sfm_packet_new()};
    for (int i = 0; i < messages; i++) {
        done(sfm_set_int(packet.get(), "tag", tag));
        done(sfm_set_int(packet.get(), "number", i));
        done(sfm_send(self, sfm_rank(self), packet.get()));
    }
}

void receives(sfm_endpoint *self, int tag)
{
    Packet wanted{sfm_packet_new()};
    done(sfm_set_int(wanted.get(), "tag", tag));
    for (int i = 0; i < messages; i++) {
        sfm_message *taken = nullptr;
        done(sfm_recv(self, wanted.get(), SFM_FOREVER, &taken));
        Message message{taken};
        std::int64_t number = -1;
        done(sfm_get_int(message.get(), "number", &number));
        if (number != i)
            std::exit(8);
    }
}

} // namespace

int main(int argc, char **argv)
{
    sfm_endpoint *self = nullptr;
    if (argc != 2)
        return 7;
    done(sfm_join(argv[1], nullptr, 5, &self));
    std::vector<std::thread> all;
    for (int tag = 0; tag < threads; tag++) {
        all.emplace_back(sends, self, tag);
        all.emplace_back(receives, self, tag);
    }
    for (auto &one : all)
        one.join();
    std::printf("%s\n", sfm_name(self));
    return 0; // the end of the program leaves the world
}
