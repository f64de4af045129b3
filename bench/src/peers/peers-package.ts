import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { peersDir } from "../project-root.ts";

/**
 * Third-party libraries and servers for comparisons. They are a separate package, `bench/peers`, which the
 * first benchmark that needs it installs.
 */
const lockFile = join(peersDir, "package-lock.json");
/** npm writes this file last. It is newer than the lock file if the installed packages are up to date. */
const installedMark = join(peersDir, "node_modules/.package-lock.json");

/** Libraries that evaluate flags. */
export const peerNames = [
  "unleash-client",
  "@openfeature/flagd-core",
  "@growthbook/growthbook",
] as const;
type PeerName = (typeof peerNames)[number] | "unleash-server";

export function installPeers(): void {
  if (peersAreInstalled()) return;
  console.error("… installing the packages in bench/peers (once)");
  // No package needs install scripts. Standard output is reserved for the report.
  execFileSync("npm", ["ci", "--ignore-scripts", "--no-audit", "--no-fund"], {
    ...{ cwd: peersDir, stdio: ["ignore", process.stderr, process.stderr] },
  });
}

export function peerVersion(name: PeerName): string {
  const manifest = readFileSync(join(peersDir, "node_modules", name, "package.json"), "utf8");
  return (JSON.parse(manifest) as { version: string }).version;
}

/** Imports a package. The caller declares its exports, because its types may not be installed. */
export async function importPeer<Exports>(name: PeerName): Promise<Exports> {
  const inside = (await import(pathToFileURL(join(peersDir, "import-peer.js")).href)) as {
    importPeer(name: string): Promise<unknown>;
  };
  return (await inside.importPeer(name)) as Exports;
}

export function peersAreInstalled(): boolean {
  return existsSync(installedMark) && statSync(installedMark).mtimeMs >= statSync(lockFile).mtimeMs;
}
