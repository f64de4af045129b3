import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { peersDir } from "../project-root.ts";

/**
 * The libraries and the server that are compared with. They are a package of their own, `bench/peers`,
 * with a lock file of its own: `npm ci` in the project installs none of it, the first benchmark that
 * needs it does.
 */
const lockFile = join(peersDir, "package-lock.json");
/** npm writes it last, so it is newer than the lock file when what is installed is what is locked. */
const installedMark = join(peersDir, "node_modules/.package-lock.json");

export type PeerName =
  | "@growthbook/growthbook"
  | "@openfeature/flagd-core"
  | "unleash-client"
  | "unleash-server";

export async function installPeers(): Promise<void> {
  if (peersAreInstalled()) return;
  console.error("… installing what is compared with, in bench/peers; this is done once");
  // Nothing of it needs its install scripts, so none of them runs.
  const npm = spawn("npm", ["ci", "--ignore-scripts", "--no-audit", "--no-fund"], {
    cwd: peersDir,
    // Standard output is the report's alone.
    stdio: ["ignore", process.stderr, process.stderr],
  });
  const [code] = await once(npm, "exit");
  if (code !== 0) throw new Error(`npm ci in bench/peers ended with ${code}`);
}

export function peerVersion(name: PeerName): string {
  const manifest = readFileSync(join(peersDir, "node_modules", name, "package.json"), "utf8");
  return (JSON.parse(manifest) as { version: string }).version;
}

/** Loads one of them; what it exports is declared by who uses it, since its types may not be there. */
export async function importPeer<Exports>(name: PeerName): Promise<Exports> {
  const inside = (await import(pathToFileURL(join(peersDir, "import-peer.js")).href)) as {
    importPeer(name: string): Promise<unknown>;
  };
  return (await inside.importPeer(name)) as Exports;
}

export function peersAreInstalled(): boolean {
  return existsSync(installedMark) && statSync(installedMark).mtimeMs >= statSync(lockFile).mtimeMs;
}
