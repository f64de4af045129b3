import { describe, expect, it } from "@jest/globals";
import { blockedPorts, readTarget, type TargetRules } from "../../src/targets/target.ts";

const production: TargetRules = { httpsOnly: true, allowPrivate: false };
const development: TargetRules = { httpsOnly: false, allowPrivate: true };

const problemOf = (text: string, rules = production) => readTarget(text, rules).problem;

describe("a target in production", () => {
  it.each([
    ["https://example.com/hooks?a=b", "https://example.com/hooks?a=b"],
    ["HTTPS://Example.COM", "https://example.com/"],
    ["https://example.com:8443/", "https://example.com:8443/"],
    ["https://example.com:80/", "https://example.com:80/"],
    ["https://example.com:10081/", "https://example.com:10081/"],
    ["https://example.com:443/", "https://example.com/"],
    ["https://example.com./", "https://example.com./"],
    ["https://bücher.example/ä", "https://xn--bcher-kva.example/%C3%A4"],
    ["https://8.8.8.8/", "https://8.8.8.8/"],
    ["https://134744072/", "https://8.8.8.8/"],
    ["https://[2606:4700:4700::1111]/", "https://[2606:4700:4700::1111]/"],
    ["https://localhost.example.com/", "https://localhost.example.com/"],
    ["https://example.com/a@b", "https://example.com/a@b"],
    ["https://example.com/?to=a@b", "https://example.com/?to=a@b"],
  ])("may be %s", (text, href) => {
    expect(readTarget(text, production)).toMatchObject({ url: { href } });
  });

  const absolute = "must be an absolute URL that begins with https://";
  it.each([
    ["", absolute],
    ["/hooks", absolute],
    ["example.com/hooks", absolute],
    ["//example.com/hooks", absolute],
    ["https:example.com", absolute],
    ["https:/example.com", absolute],
    ["ftp://example.com/", absolute],
    ["file:///etc/passwd", absolute],
    ["unix:/var/run/docker.sock", absolute],
    ["javascript:alert(1)", absolute],
    ["data:text/plain,x", absolute],
    ["ws://example.com/", absolute],
    ["http://example.com/", "must begin with https://"],
    ["HTTP://example.com/", "must begin with https://"],
    ["https://", "must have a host"],
    ["https:///hooks", "must have a host"],
    ["https://?a=b", "must have a host"],
    ["https://:443/", "is not a valid URL"],
    ["https://[fe80::1%25eth0]/", "is not a valid URL"],
    ["https://[::1/", "is not a valid URL"],
    ["https://1.2.3.4.5/", "is not a valid URL"],
    ["https://256.0.0.1/", "is not a valid URL"],
    ["https://exa%00mple.com/", "is not a valid URL"],
    ["https://example.com:65536/", "is not a valid URL"],
    ["https://example.com:-1/", "is not a valid URL"],
    ["https://example.com:0/", "must not have the port 0"],
    ["https://ada@example.com/", "must not contain a user name or password"],
    ["https://ada:pw@example.com/", "must not contain a user name or password"],
    ["https://:pw@example.com/", "must not contain a user name or password"],
    ["https://@example.com/", "must not contain a user name or password"],
    ["https://example.com@127.0.0.1/", "must not contain a user name or password"],
    ["https://example.com/#there", "must not have a fragment, which would not be sent"],
    ["https://example.com/#", "must not have a fragment, which would not be sent"],
    [`https://${"a.".repeat(127)}com/`, "must have a host of 253 characters at most"],
  ])("cannot be %j: %s", (text, problem) => {
    expect(problemOf(text)).toBe(problem);
  });

  it.each([
    " https://example.com/",
    "https://example.com/ ",
    "https://exam\nple.com/",
    "https://example.com/\t",
    "https:\\\\example.com\\hooks",
    "https://example.com\\@127.0.0.1/",
    "https://example.com/\0",
    "https://example.com/\u00A0",
  ])("cannot be %j, which is misleading", (text) => {
    expect(problemOf(text)).toBe("must not contain spaces, control characters or backslashes");
  });

  it.each([
    ["localhost", "localhost"],
    ["LocalHost", "localhost in capitals"],
    ["localhost.", "with a dot at the end"],
    ["api.localhost", "below localhost"],
    ["loc\u00ADalhost", "with a soft hyphen"],
    ["ｌｏｃａｌｈｏｓｔ", "in full-width letters"],
    ["127.0.0.1", "loopback"],
    ["127.0.0.1.", "with a dot at the end"],
    ["127.1", "short"],
    ["2130706433", "decimal"],
    ["0x7f000001", "hexadecimal"],
    ["0x7f.1", "hexadecimal and short"],
    ["0177.0.0.1", "octal"],
    ["017700000001", "octal as one number"],
    ["%31%32%37.0.0.1", "percent-encoded"],
    ["①②⑦.⓪.⓪.①", "in other digits"],
    ["127。0。0。1", "with other dots"],
    ["0", "this host"],
    ["0.0.0.0", "this host"],
    ["10.1.2.3", "private"],
    ["169.254.169.254", "metadata"],
    ["100.100.100.200", "metadata"],
    ["168.63.129.16", "metadata"],
    ["[::1]", "loopback"],
    ["[0:0:0:0:0:0:0:1]", "loopback at length"],
    ["[::]", "unspecified"],
    ["[::ffff:127.0.0.1]", "IPv4-mapped"],
    ["[::ffff:7f00:1]", "IPv4-mapped"],
    ["[::127.0.0.1]", "IPv4-compatible"],
    ["[64:ff9b::10.0.0.1]", "NAT64"],
    ["[64:ff9b:1::10.0.0.1]", "NAT64 of local use"],
    ["[2002:7f00:1::]", "6to4"],
    ["[2001:0:7f00:1::]", "Teredo"],
    ["[fd00:ec2::254]", "metadata"],
    ["[fe80::1]", "link local"],
  ])("cannot have the host %s (%s)", (host) => {
    expect(problemOf(`https://${host}/`)).toBe("must have a public host");
    expect(problemOf(`https://${host}:8443/`)).toBe("must have a public host");
  });
});

describe("a target in development", () => {
  it.each(["http://localhost:3000/", "http://127.0.0.1:3000/hooks", "https://[::1]:8443/"])(
    "may be %s if private targets are allowed",
    (text) => {
      expect(problemOf(text, development)).toBeUndefined();
    },
  );

  it("may be http with a public host if private targets are not allowed", () => {
    const rules = { httpsOnly: false, allowPrivate: false };
    expect(problemOf("http://example.com/", rules)).toBeUndefined();
    expect(problemOf("http://localhost/", rules)).toBe("must have a public host");
  });

  it.each([
    ["http://ada:pw@localhost/", "must not contain a user name or password"],
    ["http://localhost:0/", "must not have the port 0"],
    ["http://unix/a:b", "must not have the host unix"],
    ["http://UNIX./a:b", "must not have the host unix"],
    ["ftp://localhost/", "must be an absolute URL that begins with https://"],
  ])("cannot be %s: %s", (text, problem) => {
    expect(problemOf(text, development)).toBe(problem);
  });
});

describe("a port of another protocol", () => {
  const problem = (port: number) =>
    `must not have the port ${port}, which belongs to another protocol`;

  it.each([
    ["http://example.com:22", 22],
    ["http://example.com:5432/", 5432],
    ["http://example.com:6379", 6379],
    ["http://example.com:06379/", 6379],
    ["https://example.com:9200/", 9200],
    ["http://example.com:11211/?a=b", 11211],
    ["https://example.com:27017/", 27017],
    ["http://8.8.8.8:6379/", 6379],
    ["http://[2606:4700:4700::1111]:6379/", 6379],
    ["http://localhost:6379/", 6379],
    ["http://[::1]:6667/", 6667],
  ])("is rejected in development: %s", (text, port) => {
    expect(problemOf(text, development)).toBe(problem(port));
  });

  it("is rejected in production", () => {
    expect(problemOf("https://example.com:6379/")).toBe(problem(6379));
    expect(problemOf("https://[2606:4700:4700::1111]:25/")).toBe(problem(25));
  });

  it("is blocked by the fetch of Node.js as well, except those of databases", async () => {
    const databases = [5432, 6379, 9200, 11211, 27017];
    const others = [...blockedPorts].filter((port) => !databases.includes(port));
    expect(others).toHaveLength(82);
    for (const port of others)
      await expect(fetch(`http://127.0.0.1:${port}/`)).rejects.toMatchObject({
        cause: { message: "bad port" },
      });
  });
});
