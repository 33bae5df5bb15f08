/* A member of an SFM world in C, with libzmq and libsodium alone: it sends back what comes, until a
   message has the attribute `stop`. It talks to the members of its own site, and reads no pickled
   values. It is written from docs/wire-format.md.

       c_peer WORLD URL KEY NAME [SITE]

   One thread takes in what has come, and acts on it, over and over. The parts:

       packet       messages as bytes
       directory    who is in the world (json reads what it says)
       door         who may connect
       link         frames to one member, once and in order (incoming: and from it)
       connections  the sockets of this process, and what comes to them
       peer         what is done with messages */

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <zmq.h>

#include "connections.h"
#include "packet.h"

/* Send back what a member has sent, as far as it has room. */
static void echo(struct peer *peer, struct link *link)
{
    while (!link->lost && !peer->must_stop) {
        struct piece *message = link->reply ? NULL : next_message(link);
        if (message) {
            struct packet packet;
            check_packet(message->bytes, message->size, &packet);
            peer->must_stop = has_attribute(&packet, "stop");
            link->reply = peer->must_stop ? NULL : echo_of(&packet, peer->name);
            free(message);
            continue; /* what has no sender's name is not answered */
        }
        if (!link->reply)
            break;
        if (!may_send(link, link->reply->size))
            break;
        send_packet(link, link->reply);
        free(link->reply);
        link->reply = NULL;
    }
    if (link->lost || !(link->unacked.first || link->reply))
        return;
    /* A report may have been lost; and a ROUTER tells only who sends that a connection is over. */
    if (now() > link->asked_at + 0.1) {
        link->asked_at = now();
        put(link, 'Q', 0, false);
    }
    if (!link->way.socket)
        dial(peer, link);
}

static void forget_the_dead(struct peer *peer)
{
    for (struct link **at = &peer->links; *at;) {
        struct link *link = *at;
        if (find_member(&peer->directory, link->uid)) {
            at = &link->next;
            continue;
        }
        hang_up_on(peer, link->uid);
        *at = link->next;
        free_link(link);
    }
}

static bool is_settled(const struct peer *peer)
{
    for (const struct link *link = peer->links; link; link = link->next)
        if (!link->lost && (link->unacked.first || link->reply))
            return false;
    return true;
}

static void end(struct peer *peer)
{
    for (struct link *link = peer->links; link; link = link->next)
        if (!link->lost)
            put(link, 'B', 0, false);
    leave(&peer->directory);
    while (peer->links) {
        struct link *link = peer->links;
        peer->links = link->next;
        free_link(link);
    }
    while (peer->dialed) {
        set_option(peer->dialed->socket, ZMQ_LINGER, 1000);
        hang_up(&peer->dialed);
    }
    set_option(peer->router, ZMQ_LINGER, 1000);
    zmq_close(peer->router);
    zmq_close(peer->directory.socket);
    zmq_close(peer->door.socket);
    zmq_ctx_term(peer->context);
}

int main(int count, char **arguments)
{
    if (count < 5 || count > 6)
        fail("usage: c_peer WORLD URL KEY NAME [SITE]");
    if (sodium_init() < 0)
        fail("libsodium does not work here");
    struct peer peer = {.context = zmq_ctx_new(), .name = arguments[4], .site = count > 5 ? arguments[5] : ""};
    open_door(&peer.door, peer.context);
    open_directory(&peer.directory, peer.context, arguments[1], arguments[2], arguments[3]);
    listen_for_members(&peer, arguments[2]);
    join(&peer.directory, peer.name, peer.site, peer.address);
    puts("joined");
    fflush(stdout);
    double until = 0;
    while (!peer.is_foreign && (!peer.must_stop || (!is_settled(&peer) && now() < until))) {
        take_in(&peer, 100);
        forget_the_dead(&peer);
        bool had_to = peer.must_stop;
        for (struct link *link = peer.links; link; link = link->next)
            echo(&peer, link);
        if (peer.must_stop && !had_to)
            until = now() + 5;
    }
    end(&peer);
    return peer.is_foreign;
}
