import { spawnSync } from "node:child_process";

export type SystemUser = { name: string; uid: number; gid: number };

export function runsAsRoot(): boolean {
  return process.getuid?.() === 0;
}

/**
 * Returns the user that PostgreSQL runs as if root starts it, because PostgreSQL does not run as root: `postgres` if it
 * exists, otherwise `nobody`. No user is created.
 */
export function findUnprivilegedUser(): SystemUser {
  for (const name of ["postgres", "nobody"]) {
    const [uid, gid] = [idOf("-u", name), idOf("-g", name)];
    if (uid !== undefined && gid !== undefined && uid > 0) return { name, uid, gid };
  }
  return { name: "nobody", uid: 65_534, gid: 65_534 };
}

function idOf(kind: "-u" | "-g", name: string): number | undefined {
  const { status, stdout } = spawnSync("id", [kind, name], { encoding: "utf8" });
  return status === 0 ? Number.parseInt(stdout, 10) : undefined;
}

/**
 * Tests access in a process of that user, so that the permissions of parent directories, access lists and mount options
 * all count. The tests are those of the shell: `-x` to run a program or pass through a directory, `-w` to write to a
 * directory.
 */
export function userCan(user: SystemUser, test: "-x" | "-w" | "-r", path: string): boolean {
  const { uid, gid } = user;
  const asUser = { cwd: "/", uid, gid, stdio: "ignore" } as const;
  return spawnSync("/bin/sh", ["-c", `test ${test} "$0"`, path], asUser).status === 0;
}
