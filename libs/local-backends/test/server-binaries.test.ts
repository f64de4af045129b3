import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "@jest/globals";
import { findHaproxy, findNatsServer, libraryVariables } from "../src/index.ts";
import { natsServerAdvice } from "../src/programs.ts";
import { throwawayDirectories } from "./throwaway.ts";

const throwawayDirectory = throwawayDirectories();

/**
 * Scripts replace apt-get and dpkg-deb, so the tests need no network. `apt-get download` creates a file, and
 * `dpkg-deb -x` unpacks a program that prints a version.
 */
const FAKE_SERVER = "#!/bin/sh\necho 'nats-server: v2.9.10'\n";
const UNPACK = `#!/bin/sh
mkdir -p "$3/usr/sbin"
cat > "$3/usr/sbin/nats-server" <<'END'
${FAKE_SERVER}END
chmod +x "$3/usr/sbin/nats-server"
`;
const DOWNLOAD = "#!/bin/sh\ntouch nats-server.deb\n";

function machine(programs: Record<string, string>) {
  const directory = throwawayDirectory();
  const searchPath = join(directory, "bin");
  mkdirSync(searchPath);
  for (const [name, script] of Object.entries(programs)) {
    writeFileSync(join(searchPath, name), script);
    chmodSync(join(searchPath, name), 0o755);
  }
  return { cacheDir: join(directory, "cache"), searchPath };
}

describe("given a nats-server on the path", () => {
  it.each(["2.9.0", "2.9.10", "2.15.2", "3.0.0"])("accepts version %s", async (version) => {
    const options = machine({ "nats-server": `#!/bin/sh\necho 'nats-server: v${version}'\n` });

    expect(await findNatsServer(options)).toBe(join(options.searchPath, "nats-server"));
    expect(existsSync(options.cacheDir)).toBe(false);
  });

  it.each([
    ["too old", "#!/bin/sh\necho 'nats-server: v2.8.4'\n"],
    ["broken", "#!/bin/sh\nexit 1\n"],
  ])("skips one that is %s", async (_case, script) => {
    const options = machine({ "nats-server": script, "apt-get": DOWNLOAD, "dpkg-deb": UNPACK });

    expect(await findNatsServer(options)).toBe(
      join(options.cacheDir, "nats-server/usr/sbin/nats-server"),
    );
  });
});

describe("given a Debian machine without a nats-server", () => {
  it("fetches it into the cache, and finds it there the next time", async () => {
    const options = machine({ "apt-get": DOWNLOAD, "dpkg-deb": UNPACK });
    const steps: string[] = [];

    const first = await findNatsServer({ ...options, onStep: (text) => steps.push(text) });
    const second = await findNatsServer({ ...options, onStep: (text) => steps.push(text) });

    expect(second).toBe(first);
    expect(steps).toEqual([expect.stringContaining("fetching nats-server")]);
    expect(readdirSync(options.cacheDir)).toEqual(["nats-server"]);
  });

  it("fetches package lists into the cache if the system has none", async () => {
    const options = machine({
      "apt-get": `#!/bin/sh
echo "$@" >> "$0.log"
case "$1:$*" in
  update:*) exit 0;;
  download:*Dir::State::Lists=*) touch nats-server.deb;;
  *) echo "E: Unable to locate package nats-server" >&2; exit 100;;
esac
`,
      "dpkg-deb": UNPACK,
    });

    await findNatsServer(options);

    const calls = readFileSync(join(options.searchPath, "apt-get.log"), "utf8").trim().split("\n");
    expect(calls.map((call) => call.split(" ")[0])).toEqual(["download", "update", "download"]);
    for (const call of calls) expect(call).toContain(`Dir::Cache=${options.cacheDir}`);
    for (const call of calls.slice(1))
      expect(call).toContain(`Dir::State::Lists=${options.cacheDir}`);
  });

  it("unpacks one complete server for concurrent starts", async () => {
    const options = machine({ "apt-get": DOWNLOAD, "dpkg-deb": UNPACK });

    const found = await Promise.all([1, 2, 3].map(() => findNatsServer(options)));

    expect(new Set(found).size).toBe(1);
    expect(readdirSync(options.cacheDir)).toEqual(["nats-server"]);
  });
});

describe("given a machine without a nats-server and without a way to fetch one", () => {
  const nothing = "#!/bin/sh\n";

  it.each([
    ["macOS", { brew: nothing }, "  brew install nats-server"],
    ["Fedora", { dnf: nothing }, "  sudo dnf install nats-server"],
    ["Alpine", { apk: nothing }, "  apk add nats-server"],
  ])("reports the command of %s, and alternatives", async (_system, programs, command) => {
    const finding = findNatsServer(machine(programs));

    await expect(finding).rejects.toThrow("Halyard needs nats-server 2.9 or later");
    await expect(finding).rejects.toThrow(command);
    await expect(finding).rejects.toThrow("docker compose up");
    await expect(finding).rejects.toThrow("NATS_URL=nats://127.0.0.1:4222 npm start");
    await expect(finding).rejects.not.toThrow("apt-get");
  });

  it("reports brew on macOS even if it is not installed", () => {
    const { searchPath } = machine({});
    expect(natsServerAdvice({ searchPath, platform: "darwin" })).toContain("brew install");
  });

  it("reports the page of releases without a known package manager", async () => {
    const finding = findNatsServer(machine({}));

    await expect(finding).rejects.toThrow("Unpack a release onto your PATH: https://github.com/");
    await expect(finding).rejects.toThrow("docker compose up");
  });

  it("reports why fetching failed on Debian, Ubuntu and WSL", async () => {
    const finding = findNatsServer(
      machine({ "apt-get": "#!/bin/sh\necho 'E: no network' >&2\nexit 100\n", "dpkg-deb": UNPACK }),
    );

    await expect(finding).rejects.toThrow("E: no network");
    await expect(finding).rejects.toThrow("  sudo apt-get install nats-server");
  });

  it("reports an installed server that is too old", async () => {
    const options = machine({
      "nats-server": "#!/bin/sh\necho 'nats-server: v2.8.4'\n",
      dnf: nothing,
    });

    await expect(findNatsServer(options)).rejects.toThrow(
      `${options.searchPath}/nats-server is version 2.8.4, which is too old.`,
    );
  });
});

describe("given a Debian machine without HAProxy", () => {
  it("fetches it with the libraries that the system lacks, which it then finds", async () => {
    const options = machine({
      "apt-get": `#!/bin/sh
case "$1" in
  install)
    echo "'http://a/liblua_5.3-2_amd64.deb' liblua_5.3-2_amd64.deb 122984 SHA256:1"
    echo "'http://a/haproxy_2.6-1%2bdeb_amd64.deb' haproxy_2.6-1+deb_amd64.deb 2042596";;
  download)
    echo "$2 $3" > "$0.downloaded"
    touch haproxy.deb liblua.deb;;
esac
`,
      "dpkg-deb": `#!/bin/sh
mkdir -p "$3/usr/sbin" "$3/usr/lib/x86_64-linux-gnu"
cat > "$3/usr/sbin/haproxy" <<'END'
#!/bin/sh
[ -n "$LD_LIBRARY_PATH" ] && echo 'HAProxy version 2.6.12-1+deb12u4 2026/10/17'
END
chmod +x "$3/usr/sbin/haproxy"
`,
    });
    const found = await findHaproxy(options);
    expect(found).toBe(join(options.cacheDir, "haproxy/usr/sbin/haproxy"));
    const downloaded = readFileSync(join(options.searchPath, "apt-get.downloaded"), "utf8");
    expect(downloaded.trim()).toBe("haproxy liblua");
    expect(libraryVariables(found)).toEqual({
      LD_LIBRARY_PATH: join(options.cacheDir, "haproxy/usr/lib/x86_64-linux-gnu"),
    });
  });

  it("reports the ways to install it, and the built-in proxy, if it cannot be fetched", async () => {
    const finding = findHaproxy(machine({ dnf: "#!/bin/sh\n" }));
    await expect(finding).rejects.toThrow("Halyard needs haproxy 2.6 or later");
    await expect(finding).rejects.toThrow("  sudo dnf install haproxy");
    await expect(finding).rejects.toThrow("unset HALYARD_GATEWAY");
  });
});
