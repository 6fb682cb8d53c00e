# Shows how Python reads frames that attache has forwarded, as reader.mjs does for
# JavaScript. equals_ignore_case compares like Java's equalsIgnoreCase.
import functools
import json
import posixpath
import sys
import unicodedata
from urllib.parse import unquote, urlparse


# Frames repeat the same few names and URIs, so the answers about them are kept.
kept = functools.lru_cache(1 << 10)


def cleaned(k):
    return "".join(c for c in k if unicodedata.category(c) not in ("Cf", "Cc")).strip()


def equals_ignore_case(a, b):
    def same(x, y):
        return x.upper() == y.upper() or x.lower()[0] == y.lower()[0]
    return len(a) == len(b) and all(map(same, a, b))


same_names = [kept(same) for same in (
    lambda a, b: a == b,
    lambda a, b: a.strip() == b,
    lambda a, b: cleaned(a) == b,
    lambda a, b: a.lower() == b,
    lambda a, b: a.upper() == b.upper(),
    lambda a, b: a.casefold() == b.casefold(),
    lambda a, b: cleaned(a).casefold() == b.casefold(),
    equals_ignore_case,
    lambda a, b: equals_ignore_case(cleaned(a), b),
)]


def found(o, name, same):
    return [v for k, v in o.items() if same(k, name)] if isinstance(o, dict) else []


def under(path, root):
    clean = posixpath.normpath("/" + path.lstrip("/"))
    if path.endswith("/"):
        clean += "/"
    return clean.lower().startswith(root)


@kept
def is_secret(uri):
    for text in (uri, unquote(uri), uri.strip()):
        try:
            u = urlparse(text)
            host, port = u.hostname or "", u.port
        except ValueError:
            continue
        for path in (u.path, unquote(u.path), unquote(unquote(u.path))):
            if u.scheme == "file" and under(path, "/secret/"):
                return True
            if (u.scheme, host, port) in (("https", "api.example", None), ("https", "api.example", 443), ("http", "docs.example", None), ("http", "docs.example", 80)) and under(path, "/secret/"):
                return True
            if u.scheme == "note" and under(host + "/" + path, "/team/secret/"):
                return True
    for scheme, root in (("file://", "/secret/"), ("note://", "/team/secret/")):
        if uri.lower().startswith(scheme):
            rest = uri[len(scheme):]
            if under(rest, root) or under(unquote(rest), root):
                return True
    return False


def judge(message, same):
    for method in found(message, "method", same):
        if not isinstance(method, str):
            continue
        for params in found(message, "params", same):
            names = found(params, "name", same)
            if same(method, "tools/call"):
                if "drop" in names:
                    yield "calls drop"
                for args in found(params, "arguments", same):
                    if found(args, "force", same):
                        yield "sees force"
                    if any(found(o, "force", same) for o in found(args, "options", same)):
                        yield "sees options.force"
                    if any(t != "acme" for t in found(args, "tenant", same)):
                        yield "sees another tenant"
            elif same(method, "prompts/get") and "secret_plan" in names:
                yield "gets a hidden prompt"
            elif any(same(method, "resources/" + m) for m in ("read", "subscribe", "unsubscribe")):
                for uri in found(params, "uri", same):
                    if isinstance(uri, str) and is_secret(uri):
                        yield "reads " + uri


for line in sys.stdin.buffer:
    out = set()
    for frame in json.loads(line):
        try:
            value = json.loads(frame)
        except (ValueError, RecursionError):
            continue
        for message in value if isinstance(value, list) else [value]:
            for same in same_names:
                out.update(judge(message, same))
    print(json.dumps(sorted(out)), flush=True)
