"""Groups and communicators: made, compared, split, named; attributes, infos, error handlers."""

from __future__ import annotations

from itertools import product
from typing import Any

from cases import COMPARISONS, Cases, error_name, named, raised, rank, ranks
from mpi4py import MPI

cases = Cases()


def members(group: MPI.Group) -> list[Any]:
    """The ranks of a group's members in COMM_WORLD."""
    return ranks(group.Translate_ranks(None, MPI.COMM_WORLD.Get_group()))


def groups() -> None:
    world = MPI.COMM_WORLD.Get_group()
    n = world.size
    made = {
        "world": world,
        "empty": MPI.GROUP_EMPTY,
        "first": world.Incl([0]),
        "last, first": world.Incl([n - 1, 0] if n > 1 else [0]),
        "backwards": world.Incl(range(n - 1, -1, -1)),
        "nobody": world.Incl([]),
        "without the first": world.Excl([0]),
        "all": world.Excl([]),
        "even": world.Range_incl([(0, n - 1, 2)]),
        "odd": world.Range_excl([(0, n - 1, 2)]),
        "backwards by range": world.Range_incl([(n - 1, 0, -1)]),
        "self": MPI.COMM_SELF.Get_group(),
        "Dup": world.Dup(),
    }
    for name, group in made.items():
        cases.add(f"group {name}", group, group.Get_size(), rank(group.Get_rank()), members(group))
        cases.add(f"group {name}", ranks(world.Translate_ranks(range(n), group)))
        cases.add(f"group {name}", bool(group), group == MPI.GROUP_EMPTY)
    for (name, first), (other, second) in product(made.items(), repeat=2):
        case = f"groups {name}"
        cases.add(case, other, named(first.Compare(second), *COMPARISONS))
        cases.add(case, members(MPI.Group.Union(first, second)))
        cases.add(case, members(MPI.Group.Intersection(first, second)))
        cases.add(case, members(MPI.Group.Difference(first, second)))
        cases.add(case, members(MPI.Group.Intersect(first, second)))
    cases.add("Translate_ranks", ranks(world.Translate_ranks([MPI.PROC_NULL])))
    cases.error("group wrong", world.Incl, [n])
    cases.error("group wrong", world.Excl, [-1])
    cases.error("group wrong", world.Range_incl, [(0, n - 1, 0)])
    cases.error("group wrong", world.Translate_ranks, [n])
    cases.error("group wrong", MPI.GROUP_NULL.Get_size)
    cases.error("group wrong", MPI.Group.Union, world, MPI.GROUP_NULL)
    freed = made["first"]
    freed.Free()
    cases.add("group freed", freed)


def communicators() -> None:
    world = MPI.COMM_WORLD
    n, me = world.size, world.rank
    group = world.Get_group()
    cases.add("world", world, world.Is_intra(), world.Is_inter(), world.is_intra, world.is_inter)
    cases.add("world", world.Get_name(), MPI.COMM_SELF.name, MPI.COMM_SELF, MPI.COMM_NULL)
    cases.add("world", named(world.Compare(MPI.COMM_SELF), *COMPARISONS), bool(MPI.COMM_NULL))
    made: dict[str, MPI.Comm] = {
        "Dup": world.Dup(),
        "Clone": world.Clone(),
        "Dup with info": world.Dup(MPI.Info.Create({"a": "b"})),
        "Dup_with_info": world.Dup_with_info(MPI.INFO_NULL),
        "Create of all": world.Create(group),
        "Create backwards": world.Create(group.Incl(range(n - 1, -1, -1))),
        "Create of even": world.Create(group.Range_incl([(0, n - 1, 2)])),
        "Create of nobody": world.Create(MPI.GROUP_EMPTY),
        "Split in one": world.Split(),
        "Split in two": world.Split(me % 2, 0),
        "Split backwards": world.Split(0, -me),
        "Split some away": world.Split(0 if me else MPI.UNDEFINED),
        "Split by three": world.Split(me // 3, me),
        "Split equal keys": world.Split(me % 2, 7),
        "Split_type": world.Split_type(MPI.COMM_TYPE_SHARED),
        "Split_type none": world.Split_type(MPI.UNDEFINED),
        "Split_type backwards": world.Split_type(MPI.COMM_TYPE_SHARED, -me),
    }
    copy, request = world.Idup()
    request.Wait()
    made["Idup"] = copy
    copy, request = world.Idup_with_info(MPI.INFO_NULL)
    request.Wait()
    made["Idup_with_info"] = copy
    even = group.Range_incl([(0, n - 1, 2)])
    if even.rank != MPI.UNDEFINED:
        made["Create_group"] = world.Create_group(even, 5)
    made["Create_from_group"] = MPI.Intracomm.Create_from_group(group, "a tag")
    for name, comm in made.items():
        cases.add(f"comm {name}", comm, type(comm).__name__)
        if not comm:
            cases.error(f"comm {name}", comm.Get_rank)
            continue
        cases.add(f"comm {name}", members(comm.Get_group()), members(comm.group))
        cases.add(f"comm {name}", named(world.Compare(comm), *COMPARISONS), comm == world)
        cases.add(f"comm {name}", named(comm.Compare(comm), *COMPARISONS), comm.Get_name())
        cases.add(f"comm {name}", comm.allreduce([me]), rank(comm.Get_topology()))
        comm.Free()
        cases.add(f"comm {name}", comm, comm == MPI.COMM_NULL)
        cases.error(f"comm {name}", comm.Barrier)
    dup = world.Dup()
    dup.Set_name("a name")
    cases.add("name", dup.Get_name(), dup.name, dup.Dup().name)
    dup.name = "another"
    cases.add("name", dup.Get_name(), MPI.Comm(dup) == dup, MPI.Intracomm(dup).name)
    cases.error("Split", dup.Split, -5)
    cases.error("Split_type", dup.Split_type, 12345)
    dup.Disconnect()
    cases.add("Disconnect", dup)
    cases.add("parent", MPI.Comm.Get_parent() == MPI.COMM_NULL)
    cases.error("free", MPI.COMM_NULL.Free)
    first, second = world.Dup(), world.Dup()
    if me == 0:  # the same rank and tag; but two communicators
        requests = [first.isend("first", n - 1), second.isend("second", n - 1)]
    if me == n - 1:
        cases.add("apart", second.recv(source=0), first.recv(source=0))
    if me == 0:
        MPI.Request.waitall(requests)
    first.Free()
    second.Free()


def attributes() -> None:
    comm = MPI.COMM_WORLD.Dup()
    said: list[str] = []

    def copied(owner: MPI.Comm, keyval: int, value: Any) -> Any:
        said.append(f"copied {value}")
        return [*value, "copied"]

    def deleted(owner: MPI.Comm, keyval: int, value: Any) -> None:
        said.append(f"deleted {value}")

    keyval = MPI.Comm.Create_keyval(copied, deleted)
    plain = MPI.Comm.Create_keyval()
    shared = MPI.Comm.Create_keyval(lambda comm, keyval, value: value)
    number = MPI.Comm.Create_keyval(nopython=True)
    cases.add("attributes", comm.Get_attr(keyval))
    comm.Set_attr(keyval, ["set"])
    comm.Set_attr(plain, "plain")
    comm.Set_attr(shared, "shared")
    comm.Set_attr(number, 42)
    copy = comm.Dup()
    for holder in (comm, copy):
        cases.add("attributes", [holder.Get_attr(key) for key in (keyval, plain, shared, number)])
    comm.Set_attr(keyval, ["again"])
    cases.add("attributes", comm.Get_attr(keyval), said)
    comm.Delete_attr(keyval)
    cases.add("attributes", comm.Get_attr(keyval), said)
    copy.Free()
    cases.add("attributes", said)
    freed = MPI.Comm.Free_keyval(keyval)
    cases.add("attributes", named(freed, "KEYVAL_INVALID"))
    cases.error("attributes", comm.Get_attr, MPI.KEYVAL_INVALID)
    comm.Free()

    def refuses(owner: MPI.Comm, keyval: int, value: Any) -> None:
        raise MPI.Exception(MPI.ERR_ARG)

    keyval = MPI.Comm.Create_keyval(refuses, refuses)
    comm = MPI.COMM_SELF.Dup()
    comm.Set_attr(keyval, 1)
    cases.error("attributes that cannot be copied", comm.Dup)
    cases.error("attributes that cannot be deleted", comm.Delete_attr, keyval)
    world = MPI.COMM_WORLD
    cases.add("attributes of the world", world.Get_attr(MPI.TAG_UB) >= 32767)
    cases.add("attributes of the world", type(world.Get_attr(MPI.WTIME_IS_GLOBAL)))
    cases.add("attributes of the world", world.Get_attr(MPI.LASTUSEDCODE) >= MPI.ERR_LASTCODE)


def infos() -> None:
    info = MPI.Info.Create()
    cases.add("info", len(info), info.Get_nkeys(), info.Get("none"), info.get("none", "other"))
    info.Set("one", "1")
    info["two"] = "2"
    info.update({"three": "3"}, four="4")
    cases.add("info", info, info["two"], "two" in info, "five" in info, len(info))
    cases.add("info", sorted(info.Get_nthkey(index) for index in range(4)), sorted(info))
    cases.add("info", sorted(info.keys()), sorted(info.values()), sorted(info.items()))
    cases.add("info", info.pop("one"), info.pop("none", "other"), info.Dup(), info.copy())
    info.Delete("two")
    del info["three"]
    cases.add("info", info, info.popitem(), info)
    info.update([("x", "y")])
    other = MPI.Info.Create(info)
    info.clear()
    cases.add("info", info, other, MPI.Info.Create([("k", "v")]))
    cases.error("info wrong", lambda: info["none"])
    cases.error("info wrong", info.Delete, "none")
    cases.error("info wrong", info.pop, "none")
    cases.error("info wrong", info.popitem)
    cases.error("info wrong", info.Get_nthkey, 3)
    cases.error("info wrong", info.Set, "k" * (MPI.MAX_INFO_KEY + 1), "v")
    cases.error("info wrong", info.Set, "k", "v" * (MPI.MAX_INFO_VAL + 1))
    cases.error("info wrong", info.Set, "", "v")
    cases.add("info null", MPI.INFO_NULL, len(MPI.INFO_NULL), "k" in MPI.INFO_NULL)
    other.Free()
    cases.add("info null", other, isinstance(MPI.INFO_ENV.Get("soft"), str | None))
    cases.add("info null", type(MPI.Info.Create_env()).__name__)
    comm = MPI.COMM_SELF.Dup()
    comm.Set_info(MPI.Info.Create({"mine": "yes"}))
    cases.add("info of a comm", comm.Get_info() == MPI.INFO_NULL, type(comm.info).__name__)
    comm.info = MPI.Info.Create()
    comm.Free()


def error_handlers() -> None:
    comm = MPI.COMM_SELF.Dup()
    said: list[str] = []

    def handler(caller: MPI.Comm, code: int) -> None:
        said.append(f"{caller == comm} {error_name(code)}")

    cases.add("handlers", comm.Get_errhandler() == MPI.ERRORS_RETURN, MPI.ERRHANDLER_NULL)
    errhandler = MPI.Comm.Create_errhandler(handler)
    comm.Set_errhandler(errhandler)
    cases.add("handlers", comm.Get_errhandler() == errhandler, errhandler)
    comm.Call_errhandler(MPI.ERR_OTHER)
    raised(comm.Send, bytes(1), 99)  # MPI does not say what follows
    cases.add("handlers", said, comm.Dup().Get_errhandler() == errhandler)
    comm.Set_errhandler(MPI.ERRORS_RETURN)
    cases.error("handlers", comm.Call_errhandler, MPI.ERR_RANK)
    cases.error("handlers", comm.Set_errhandler, MPI.ERRHANDLER_NULL)
    errhandler.Free()
    cases.add("handlers", errhandler)
    comm.Free()


def sessions() -> None:
    session = MPI.Session.Init()
    names = [session.Get_nth_pset(index) for index in range(session.Get_num_psets())]
    cases.add("session", session, [name for name in names if name.startswith("mpi:")])
    for name in ("mpi://WORLD", "mpi://SELF"):
        info = session.Get_pset_info(name)
        cases.add("session", info.Get("mpi_size"))
        group = session.Create_group(name)
        cases.add("session", group, members(group))
        cases.add("session", members(MPI.Group.Create_from_session_pset(session, name)))
        comm = MPI.Intracomm.Create_from_group(group, f"of {name}")
        cases.add("session", comm, comm.allreduce([comm.rank]))
        comm.Free()
        group.Free()
    cases.error("session", session.Create_group, "mpi://NONE")
    cases.add("session", type(session.Get_info()).__name__)
    cases.add("session", session.Get_errhandler() == MPI.ERRORS_RETURN)
    cases.error("session", session.Call_errhandler, MPI.ERR_ARG)
    errhandler = MPI.Session.Create_errhandler(lambda session, code: None)
    session.Set_errhandler(errhandler)
    cases.error("session", session.Call_errhandler, MPI.ERR_ARG)
    session.Attach_buffer(bytearray(10_000))
    session.Flush_buffer()
    session.Iflush_buffer().Wait()
    cases.add("session", session.Detach_buffer() is not None)
    session.Finalize()
    cases.add("session", session, MPI.SESSION_NULL)


groups()
communicators()
attributes()
infos()
error_handlers()
sessions()
cases.done()
