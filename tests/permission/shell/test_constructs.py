"""Each construct of the shell: what is allowed, what asks, and what must not get through."""

import pytest

from tests.permission.shell.judging import judge, policy

LISTED = policy(
    {
        "*": "ask",
        "ls *": "allow",
        "cat *": "allow",
        "git status *": "allow",
        "git log *": "allow",
        "git fetch *": "allow",
        "grep *": "allow",
        "find *": "allow",
        "xargs grep *": "allow",
        "sed *": "allow",
        "awk *": "allow",
        "CI=1 npm test *": "allow",
        "> out/*": "allow",
        "f *": "allow",
    }
)
"""Only what is listed is allowed."""
FREE = policy({"*": "allow", "rm *": "deny", "git push *": "ask"})
"""Everything but what is listed is allowed."""

CONSTRUCTS = {
    "simple": ("ls -la src", "make", "/bin/rm -rf x"),
    "quoted name": ("ls 'src' && ls", "'make' all", "r''m x"),
    "pipe": ("git log | grep fix", "git log | sh", "ls | rm -rf x"),
    "and": ("ls && git status", "ls && make", "ls && rm x"),
    "or, list, background": ("ls || ls; ls &", "ls; make &", "true || rm x"),
    "subshell": ("(ls; git status)", "(cd src; make)", "ls; (((rm x)))"),
    "braces": ("{ ls; git status; }", "{ ls; make; }", "{ ls; { rm x; }; }"),
    "here-document": (
        "cat <<'END'\nrm $(rm x)\nEND",
        "cat <<END\n$(make)\nEND",
        "cat <<END\n`rm x`\nEND",
    ),
    "substitution": ("ls $(git status)", "ls $(make)", 'ls "a $(echo $(rm x))"'),
    "process substitution": ("cat <(git log)", "cat <(make)", "cat <(rm x)"),
    "environment prefix": ("CI=1 npm test -- a", "PAGER=x git log", "A=1 B=2 rm x"),
    "assignment": ("x=1; ls $x", "PATH=/tmp/x; ls", "x=$(rm y)"),
    "redirection": ("ls > out/a 2>&1", "ls > src/main.py", "rm x > /dev/null"),
    "redirection outside": ("ls > /dev/null", "cat < /etc/passwd", "ls >> ~/.bashrc; rm x"),
    "cd then relative": ("cd src && cat a", "cd .. && cat a", "cd src; rm a"),
    "glob": ("cat src/*.py", "cat /etc/pass*", "rm *"),
    "glob as name": ("ls *", "/bin/l* x", "/bin/r* x"),
    "variable": ('for f in a b; do cat "$f"; done', "cat $FILE", "x=rm; $x -rf y"),
    "home": ("cat ./a", "cat ~/.ssh/id_rsa $HOME/x", "rm ~/x"),
    "function": ("f() { ls; }; f", "f() { make; }; f", "f() { rm x; }; f"),
    "function that shadows": ("f() { ls; }; f", "git() { make; }; git status", 'f() { "$@"; }; f rm x'),
    "alias": ("ls", "alias ls=make; ls", "alias ls=rm; ls x"),
    "eval": ("ls", "eval ls", "eval 'rm x'"),
    "xargs": ("git log | xargs grep x", "git log | xargs make", "echo x | xargs rm"),
    "find -exec": (
        r"find . -name '*.py' -exec grep x {} \;",
        r"find . -exec make {} \;",
        "find . -exec rm {} +",
    ),
    "git -c": ("git log -5", "git -c core.pager=make log", "git -c alias.x='!rm y' x"),
    "git -C": ("git log", "git -C /etc log", "git -C . push"),
    "git options": ("git fetch origin", "git fetch --upload-pack=make", "git 'push' origin"),
    "sh -c": ("ls", "sh -c 'ls && make'", "bash -ec 'rm x'"),
    "sudo and env": ("ls", "sudo ls", "env A=1 rm x"),
    "timeout": ("timeout 5 ls", "timeout 5 make", "nice -n 5 timeout 5 rm x"),
    "loop": ("while ls; do git status; done", "for x in a; do make; done", "until rm x; do :; done"),
    "condition": ("if [ -f a ]; then ls; fi", "[[ -f a ]] && make", "case a in a) rm x;; esac"),
    "arithmetic": ("ls $((1 + 2))", "x='a[$(make)]'; ls $((x))", "x='a[$(rm y)]'; [[ x -eq 1 ]]"),
    "braces that expand": ("ls {a,b}", "cat {/etc/passwd,a}", "r{m,} x"),
    "sed and awk": ("sed -n 1,5p a | awk '{ print $1 }'", "sed '1e make' a", "awk '{ system(\"rm x\") }'"),
    "continued line": ("ls \\\n  -la", "ls && \\\n  make", "r\\\nm x"),
    "other spaces": ("ls a", "ls\u00a0a", "ls\u00a0; rm x"),
    "comment": ("ls # rm x", "ls # x\nmake", "ls a#b; rm x"),
    "connection": ("ls", "cat < /dev/tcp/1.2.3.4/80", "exec 3<>/dev/tcp/1.2.3.4/80; rm x"),
    "script on the input": ("ls", "echo ls | bash", "echo 'rm x' | sh"),
}  # fmt: skip


@pytest.mark.parametrize("name", CONSTRUCTS)
def test_what_is_listed_is_allowed(name: str) -> None:
    """Only where every command of it is."""
    allowed, _, _ = CONSTRUCTS[name]
    assert judge(allowed, LISTED) == "allow"


@pytest.mark.parametrize("name", CONSTRUCTS)
def test_what_is_not_listed_asks(name: str) -> None:
    """Also where it cannot be understood."""
    _, asked, _ = CONSTRUCTS[name]
    assert judge(asked, LISTED) == "ask"


@pytest.mark.parametrize("name", CONSTRUCTS)
def test_no_construct_hides_a_command(name: str) -> None:
    """What is denied is denied wherever it stands; what cannot be understood asks, and never runs unasked."""
    _, _, escape = CONSTRUCTS[name]
    assert judge(escape, FREE) in ("deny", "ask")
    assert judge(escape, LISTED) in ("ask", "deny")


@pytest.mark.parametrize(
    "command",
    ["/bin/rm x", "ls && rm x", "( (rm x) )", "true || rm x", "A=1 rm x", 'ls "a $(echo $(rm x))"', "r''m x",
     "\\rm x", "f() { rm x; }; f", "timeout 5 rm x", "env A=1 rm x", "bash -ec 'rm x'", "uv run rm x",
     "bash -c -- 'rm x'", "find . -exec rm {} +", "find . -delete", "echo x | xargs rm",
     "until rm x; do :; done", "> rm rm"],
)  # fmt: skip
def test_a_denial_is_no_question(command: str) -> None:
    """Where the denied command is understood, the user is not asked about it."""
    assert judge(command, FREE) == "deny"


@pytest.mark.parametrize("command", ["bash -c -e 'rm x'", "sh -c +x 'rm x'", "bash -c -o pipefail 'rm x'"])
def test_options_before_a_script_are_no_script(command: str) -> None:
    """A shell takes more options after `-c`; the word after it need not be what it runs."""
    assert judge(command, FREE) == "ask"


@pytest.mark.parametrize(
    "command",
    ["sed -n '1erm x' f", "sed 's|a|rm x|e' f", "sed -E 's#.*#rm x#e' f", "sed p f -e '1e rm x'",
     "sed --expr='1e rm x' f", "sed -ne 'erm x' f", "sed '/a/{erm x\n}' f", "sed 's/a/b/wout' f",
     "sed 1wout f", "sed -nf script f", "sed 's/[/]/rm x;/e;#/p' f", "sed 's/[[:space:]/]/x/e' f"],
)  # fmt: skip
def test_a_script_of_sed_that_runs_or_writes_asks(command: str) -> None:
    """Whatever its signs, its spaces and the place of its options are."""
    assert judge(command, LISTED) == "ask"


@pytest.mark.parametrize(
    "command",
    ["git fetch --upload-pa='rm x' .", "git rebase --exe 'rm x' HEAD", "git rebase -ix 'rm x' HEAD",
     "git clone -u 'rm x' . y", "tar --checkpoint-act=exec=rm -cf x y", "sort --compress-prog=rm x",
     "split --filt='rm x' y", "man --pag=rm ls"],
)  # fmt: skip
def test_an_option_that_is_cut_short_is_the_option(command: str) -> None:
    """It runs a program as the whole one does."""
    assert judge(command, FREE) == "ask"


@pytest.mark.parametrize(
    "script",
    ["10,20p", "/a/,+3p", "5{p;q}", "$!N;s/\\n/ /g", ":a;N;$!ba;s|/usr|/opt|g", "s/^[[:space:]]*//;s/ *$//",
     "/^#/d", "1~2d", "y/abc/xyz/", "1i text", "/x/!d", "s/(a|b)+/\\1/gI; $="],
)  # fmt: skip
def test_a_script_of_sed_that_changes_text_is_understood(script: str) -> None:
    """Everyday scripts need no question."""
    assert judge(f"sed -i.bak -E -e '{script}' f", LISTED) == "allow"


def test_without_rules_against_anything_all_runs() -> None:
    """What cannot be understood is allowed where any command, and any place, is."""
    assert judge('eval "$x"', policy({"*": "allow"}, outside="allow")) == "allow"
    assert judge('eval "$x"', policy({"*": "allow"}, outside="ask")) == "ask"
    assert judge('eval "$x"', policy({"*": "deny", "ls *": "allow"})) == "deny"


@pytest.mark.parametrize(
    "command",
    [
        "cd src && pytest -q tests/test_a.py 2>&1 | tail -20",
        "python3 - <<'EOF'\nimport os\nprint(os.environ['HOME'], `x`)\nEOF",
        'for f in src/*.py; do wc -l "$f"; done | sort -n',
        "git add -A && git commit -m 'Fix: the \"thing\"'",
        "npm run build && npm test -- --watch=false",
        "grep -rn '/api/v1' src --include='*.ts' | head -5",
        "mkdir -p src/{a,b} && touch src/a/x.py",
        'i=0; while [ "$i" -lt 3 ]; do i=$((i + 1)); done',
        "if [ ! -d .venv ]; then python3 -m venv .venv; fi",
        "awk '$3 > 5 { print $1 }' data.txt",
        "sed -i 's/foo/bar/g' a.py",
        "find . -type f -name '*.pyc' -exec ls -l {} \\;",
        "cat > src/new.py <<'EOF'\ndef f(x):\n    return {x | 1, '$(rm)'}\nEOF\npython src/new.py",
        "curl -s http://localhost:8000/health | jq .status",
        'VERSION=$(git describe --tags); echo "$VERSION"',
        "export CI=1 && make test",
        "set -euo pipefail; make",
        "docker compose up -d && docker ps",
        "diff <(git show HEAD:a) a || true",
        "ls -la; echo ---; git status --short",
    ],
)
def test_everyday_commands_are_understood(command: str) -> None:
    """A model's usual commands need no question where the rules are against nothing in them."""
    assert judge(command, policy({"*": "allow", "rm *": "deny"})) == "allow"
