"""The world around a box under attack: `python attack_world.py FOLDER full|partial|bare`, as any user.

Makes what the attacks aim at, runs them (in a box of that level, or without one), and prints what they print.
"""

import json
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

from holdfast.location.box import start
from holdfast.location.box.policy import BoxPolicy

WAIT_S = 30
ATTACKS = Path(__file__).parent / "attacks.py"
# Another process of the same user, so that an attack which works hits nothing else.
OWNER = """
import ctypes, sys
kept = ctypes.create_string_buffer(8)
print(ctypes.addressof(kept), flush=True)
sys.stdin.read()
"""


def main() -> None:
    root, level = Path(sys.argv[1]), sys.argv[2]
    world = folders(root)
    owner = subprocess.Popen([sys.executable, "-c", OWNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert owner.stdout is not None
    world["address"] = int(owner.stdout.readline())
    world["owner"] = owner.pid
    listeners = listen(root, world)
    descriptor = os.open(root / "outside" / "file", os.O_WRONLY)
    world["descriptor"] = descriptor
    inside = root / "inside"
    command = [sys.executable, str(ATTACKS), json.dumps(world)]
    policy = BoxPolicy(
        mode="workspace",
        write=(str(inside),),
        temporary=str(root / "temporary"),
        hidden=(str(root / "hidden"), str(root / "key"), str(inside / "private")),
        revealed=(str(ATTACKS.parent),),  # It may lie in a temporary folder, as any checkout.
        pinned=(str(inside / ".git"),),
        protected=(str(inside / ".git" / "hooks"), str(inside / ".git" / "config")),
    )
    env = {"PATH": os.defpath}
    if level == "bare":
        env["OWNER_API_KEY"] = "secret"
        ran = subprocess.run(
            command,
            cwd=inside,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            pass_fds=[descriptor],
            timeout=WAIT_S,
            check=False,
        )
    else:
        with start.prepared(policy, namespaces=level == "full") as box:
            ran = subprocess.run(
                box.command(command),
                cwd=inside,
                env=env | box.environment(),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                pass_fds=[*box.descriptors, descriptor],
                start_new_session=True,
                timeout=WAIT_S,
                check=False,
            )
    owner.kill()
    owner.communicate()
    for each in listeners:
        each.close()
    sys.stderr.buffer.write(ran.stderr)
    sys.stdout.buffer.write(ran.stdout)
    sys.exit(ran.returncode)


def folders(root: Path) -> dict[str, object]:
    for name in ("inside/private", "inside/.git/hooks", "outside", "hidden", "temporary"):
        (root / name).mkdir(parents=True)
    for name in ("file", "doomed", "taken", "swapped"):
        (root / "outside" / name).write_text("kept")
    for name in ("hidden/secret", "key", "inside/private/secret", "inside/.git/config"):
        (root / name).write_text("secret")
    return {
        "inside": str(root / "inside"),
        "outside": str(root / "outside"),
        "hidden_file": str(root / "key"),
        "hidden_folder": str(root / "hidden"),
    }


def listen(root: Path, world: dict[str, object]) -> list[socket.socket]:
    named = socket.socket(socket.AF_UNIX)
    named.bind(str(root / "outside" / "socket"))
    abstract = socket.socket(socket.AF_UNIX)
    abstract.bind(f"\0holdfast-box-{os.getpid()}")
    tcp = socket.socket()
    tcp.bind(("127.0.0.1", 0))
    for each in (named, abstract, tcp):
        each.listen(8)
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.bind(("127.0.0.1", 0))
    threading.Thread(target=echo, args=(udp,), daemon=True).start()
    world |= {
        "socket": str(root / "outside" / "socket"),
        "abstract": f"holdfast-box-{os.getpid()}",
        "port": tcp.getsockname()[1],
        "udp_port": udp.getsockname()[1],
    }
    return [named, abstract, tcp, udp]


def echo(udp: socket.socket) -> None:
    while True:
        try:
            data, peer = udp.recvfrom(16)
            udp.sendto(data, peer)
        except OSError:
            return


if __name__ == "__main__":
    main()
