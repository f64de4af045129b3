import { execFileSync, spawnSync } from "node:child_process";

export type SystemUser = { name: string; uid: number; gid: number };

/** In the order of preference. No user is ever created: nothing of the system is changed. */
const CANDIDATES = ["postgres", "nobody"];

/** PostgreSQL refuses to run as root, so root lends it the user that is made for it, or the least one. */
export function findUnprivilegedUser(): SystemUser {
  for (const name of CANDIDATES) {
    const uid = numericId(["-u", name]);
    const gid = numericId(["-g", name]);
    if (uid !== undefined && gid !== undefined && uid > 0) return { name, uid, gid };
  }
  return { name: "nobody", uid: 65_534, gid: 65_534 };
}

function numericId(args: string[]): number | undefined {
  try {
    const output = execFileSync("id", args, {
      encoding: "utf8",
      stdio: ["ignore", "pipe", "ignore"],
    });
    return Number.parseInt(output, 10);
  } catch {
    // This is how id answers that there is no such user.
    return undefined;
  }
}

/**
 * Asks the system itself, in a process of that user, so that closed parents, access lists and mount
 * options all count. Tests are those of the shell: `-x` for a program or a directory to pass
 * through, `-w` for a directory to write in.
 */
export function userCan(user: SystemUser, test: "-x" | "-w" | "-r", path: string): boolean {
  const result = spawnSync("/bin/sh", ["-c", `test ${test} "$0"`, path], {
    cwd: "/",
    uid: user.uid,
    gid: user.gid,
    stdio: "ignore",
  });
  return result.status === 0;
}

export function runsAsRoot(): boolean {
  return process.getuid?.() === 0;
}
