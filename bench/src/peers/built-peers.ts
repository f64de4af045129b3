import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Bench } from "../benchmark.ts";
import { cacheDir, peersDir } from "../project-root.ts";

/**
 * Servers in Go and Rust for comparisons, built from their registries. `bench/peers/go.sum` and the lock file inside the
 * crate pin their sources.
 */
const directory = join(cacheDir, "peers");
const unleashEdgeVersion = "20.1.0";

type BuiltPeer = { path: string; version: string; command: readonly [string, ...string[]] };

const builtPeers = {
  "Unleash Edge": {
    path: join(directory, "bin/unleash-edge"),
    version: unleashEdgeVersion,
    command: [
      ...(["cargo", "install", "--locked", "--root", directory] as const),
      `unleash-edge@${unleashEdgeVersion}`,
    ],
  },
  "GO Feature Flag": goPeer("go-feature-flag", {
    module: "github.com/thomaspoignant/go-feature-flag",
    main: "github.com/thomaspoignant/go-feature-flag/cmd/relayproxy",
  }),
  "flagd-core": goPeer("flagd", { module: "github.com/open-feature/flagd/core", main: "./flagd" }),
} satisfies Record<string, BuiltPeer>;
export type BuiltPeerName = keyof typeof builtPeers;

function goPeer(name: string, { module, main }: { module: string; main: string }): BuiltPeer {
  const path = join(directory, name);
  const required = readFileSync(join(peersDir, "go.mod"), "utf8");
  const version = new RegExp(`\\s${module} v(\\S+)`).exec(required)?.[1];
  if (version === undefined) throw new Error(`bench/peers/go.mod does not require ${module}`);
  return { path, version, command: ["go", "build", "-o", path, main] };
}

/**
 * Returns the path of a server. Go or Cargo builds it if it is missing or out of date; a quick run builds nothing.
 * Undefined, with a note, without such a server.
 */
export function buildPeer(bench: Bench, name: BuiltPeerName): string | undefined {
  const { path, version, command } = builtPeers[name];
  const isBuilt = bench.quick ? existsSync(path) : build(bench, name, command);
  if (!isBuilt) {
    const reason = bench.quick
      ? "a quick run builds no servers"
      : `\`${command[0]}\` is missing, or could not build it`;
    return void bench.note`${name} ${version} was not measured: ${reason}.`;
  }
  bench.version(name, version);
  return path;
}

function build(bench: Bench, name: string, [command, ...args]: BuiltPeer["command"]): boolean {
  bench.say(`${name}: ${command} builds it, if it is not up to date`);
  mkdirSync(directory, { recursive: true });
  const { status } = spawnSync(command, args, {
    cwd: peersDir,
    env: { ...process.env, CGO_ENABLED: "0" },
    // Standard output is reserved for the report.
    stdio: ["ignore", process.stderr, process.stderr],
  });
  return status === 0;
}
