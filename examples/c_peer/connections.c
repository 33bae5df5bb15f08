/* A connection that ends is not made again by ZeroMQ: the link to its member goes on over another one. */

#define _POSIX_C_SOURCE 200809L
#include "connections.h"

#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zmq.h>

/* Where others reach this machine: its address on the way to the directory server. */
static void find_own_ip(const char *url, char *ip, size_t size)
{
    char host[256], port[16];
    struct addrinfo wanted = {.ai_socktype = SOCK_DGRAM}, *found;
    if (sscanf(url, "tcp://%255[^/:]:%15[0-9]", host, port) != 2
        && sscanf(url, "tcp://[%255[^]/]]:%15[0-9]", host, port) != 2)
        fail("%s is no address of a directory server", url);
    if (getaddrinfo(host, port, &wanted, &found) != 0)
        fail("%s is not known as a host", host);
    struct sockaddr_storage own;
    socklen_t length = sizeof own;
    int probe = socket(found->ai_family, SOCK_DGRAM, 0);
    if (probe < 0 || connect(probe, found->ai_addr, found->ai_addrlen) != 0
        || getsockname(probe, (struct sockaddr *)&own, &length) != 0
        || getnameinfo((struct sockaddr *)&own, length, ip, (socklen_t)size, NULL, 0, NI_NUMERICHOST) != 0)
        fail("there is no way to %s", host);
    close(probe);
    freeaddrinfo(found);
}

void listen_for_members(struct peer *peer, const char *url)
{
    char ip[128];
    find_own_ip(url, ip, sizeof ip);
    peer->router = zmq_socket(peer->context, ZMQ_ROUTER);
    set_option(peer->router, ZMQ_CURVE_SERVER, 1);
    zmq_setsockopt(peer->router, ZMQ_CURVE_SECRETKEY, peer->directory.secret_half, 41);
    zmq_setsockopt(peer->router, ZMQ_ZAP_DOMAIN, "sfm", 3);
    set_option(peer->router, ZMQ_ROUTER_MANDATORY, 1); /* it says when a connection is over */
    set_option(peer->router, ZMQ_SNDHWM, 0);           /* credit bounds what waits */
    set_option(peer->router, ZMQ_LINGER, 0);
    int64_t largest = 2 * LARGEST_BODY; /* with what CURVE adds */
    zmq_setsockopt(peer->router, ZMQ_MAXMSGSIZE, &largest, sizeof largest);
    bool is_new = strchr(ip, ':') != NULL;
    set_option(peer->router, ZMQ_IPV6, is_new);
    char *anywhere = printed(is_new ? "tcp://[%s]:*" : "tcp://%s:*", ip);
    size_t size = sizeof peer->address;
    if (zmq_bind(peer->router, anywhere) != 0
        || zmq_getsockopt(peer->router, ZMQ_LAST_ENDPOINT, peer->address, &size) != 0)
        fail("this process cannot listen at %s: %s", anywhere, zmq_strerror(zmq_errno()));
    free(anywhere);
}

static struct link *find_link(struct peer *peer, const char *uid)
{
    struct link *link = peer->links;
    while (link && strcmp(link->uid, uid) != 0)
        link = link->next;
    const struct member *member = link ? NULL : find_member(&peer->directory, uid);
    if (member) {
        link = new_link(uid, member->name, peer->directory.uid, peer->address, peer->site);
        link->next = peer->links;
        peer->links = link;
    }
    return link;
}

void hang_up(struct dialed **at)
{
    struct dialed *dialed = *at;
    *at = dialed->next;
    zmq_socket_monitor(dialed->socket, NULL, 0);
    zmq_close(dialed->report);
    zmq_close(dialed->socket);
    free(dialed);
}

void hang_up_on(struct peer *peer, const char *uid)
{
    for (struct dialed **at = &peer->dialed; *at;) {
        if (strcmp((*at)->uid, uid) == 0)
            hang_up(at);
        else
            at = &(*at)->next;
    }
}

void dial(struct peer *peer, struct link *link)
{
    static unsigned number;
    const struct member *member = find_member(&peer->directory, link->uid);
    if (!member || now() < link->dialed_at + 0.1)
        return;
    link->dialed_at = now();
    hang_up_on(peer, link->uid);
    uint8_t key[32];
    char server[41], *reports = printed("inproc://reports-%u", ++number);
    from_hex(member->public_half, key, 32);
    struct dialed *dialed = resized(NULL, sizeof *dialed);
    void *socket = zmq_socket(peer->context, ZMQ_DEALER), *report = zmq_socket(peer->context, ZMQ_PAIR);
    *dialed = (struct dialed){peer->dialed, socket, report, ""};
    memcpy(dialed->uid, link->uid, sizeof dialed->uid);
    peer->dialed = dialed;
    zmq_z85_encode(server, key, 32);
    show_keys(dialed->socket, peer->directory.public_half, peer->directory.secret_half, server);
    set_option(dialed->socket, ZMQ_RECONNECT_IVL, -1); /* one socket is one connection */
    set_option(dialed->socket, ZMQ_SNDHWM, 0);
    set_option(dialed->socket, ZMQ_IPV6, strchr(member->address, '[') != NULL);
    int64_t largest = 2 * LARGEST_BODY; /* with what CURVE adds */
    zmq_setsockopt(dialed->socket, ZMQ_MAXMSGSIZE, &largest, sizeof largest);
    if (zmq_socket_monitor(dialed->socket, reports, ZMQ_EVENT_DISCONNECTED | ZMQ_EVENT_CLOSED) != 0
        || zmq_connect(dialed->report, reports) != 0)
        fail("ZeroMQ reports no ends of connections: %s", zmq_strerror(zmq_errno()));
    free(reports);
    if (zmq_connect(dialed->socket, member->address) != 0) {
        give_up(link, "its address is none of ZeroMQ's");
        hang_up(&peer->dialed);
        return;
    }
    struct way way = {.socket = dialed->socket};
    use_way(link, &way, true);
}

/* Take in all frames that have come to a socket; those of a DEALER are its member's. */
static void take_frames(struct peer *peer, void *socket, const char *uid)
{
    zmq_msg_t message;
    zmq_msg_init(&message);
    struct way way = {.socket = socket};
    for (int size; (size = uid ? 0 : zmq_recv(socket, way.route, sizeof way.route, ZMQ_DONTWAIT)) >= 0;) {
        way.route_size = (size_t)size < sizeof way.route ? (size_t)size : sizeof way.route;
        if (zmq_msg_recv(&message, socket, ZMQ_DONTWAIT) < 0)
            break;
        const char *owner = uid ? uid : zmq_msg_gets(&message, "User-Id");
        struct link *link = owner ? find_link(peer, owner) : NULL;
        const uint8_t *frame = zmq_msg_data(&message);
        /* Who greets on a new connection may ask with the flag that it is used instead of the former one. If
           that has ended, the one that the member still uses will do. */
        bool greets = zmq_msg_size(&message) > 65 && frame[64] == 'H';
        if (link && !link->lost && (!link->way.socket || (way.route_size && greets && frame[65])))
            use_way(link, &way, false);
        if (link && !take_frame(link, &way, frame, zmq_msg_size(&message)))
            peer->is_foreign = true;
        while (zmq_msg_more(&message)) /* a frame has one part: the others are nobody's */
            zmq_msg_recv(&message, socket, ZMQ_DONTWAIT);
    }
    zmq_msg_close(&message);
}

void take_in(struct peer *peer, long milliseconds)
{
    int count = 3;
    for (struct dialed *dialed = peer->dialed; dialed; dialed = dialed->next)
        count += 2;
    zmq_pollitem_t *items = resized(NULL, (size_t)count * sizeof *items), *item = items;
    *item++ = (zmq_pollitem_t){peer->directory.socket, 0, ZMQ_POLLIN, 0};
    *item++ = (zmq_pollitem_t){peer->door.socket, 0, ZMQ_POLLIN, 0};
    *item++ = (zmq_pollitem_t){peer->router, 0, ZMQ_POLLIN, 0};
    for (struct dialed *dialed = peer->dialed; dialed; dialed = dialed->next) {
        *item++ = (zmq_pollitem_t){dialed->socket, 0, ZMQ_POLLIN, 0};
        *item++ = (zmq_pollitem_t){dialed->report, 0, ZMQ_POLLIN, 0};
    }
    zmq_poll(items, count, milliseconds);
    read_news(&peer->directory);
    serve_door(&peer->door, &peer->directory);
    take_frames(peer, peer->router, NULL);
    item = items + 3;
    for (struct dialed **at = &peer->dialed; *at; item += 2) {
        take_frames(peer, (*at)->socket, (*at)->uid);
        if (!item[1].revents) {
            at = &(*at)->next;
            continue;
        }
        struct link *link = find_link(peer, (*at)->uid); /* it has ended, or was not made */
        if (link && link->way.socket == (*at)->socket)
            link->way.socket = NULL;
        hang_up(at);
    }
    free(items);
}
