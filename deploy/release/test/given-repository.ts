import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";

export const projectRoot = fileURLToPath(new URL("../../../", import.meta.url));

const notCopied = new Set(["node_modules", ".git", ".halyard", ".cache", ".tsbuild"]);

/** Excludes the git settings of the developer, and the variables that git sets for hooks. */
const env = {
  PATH: process.env.PATH,
  NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
  GIT_CONFIG_NOSYSTEM: "1",
  GIT_CONFIG_GLOBAL: "/dev/null",
  GIT_AUTHOR_NAME: "Test",
  GIT_AUTHOR_EMAIL: "test@halyard.example",
  GIT_COMMITTER_NAME: "Test",
  GIT_COMMITTER_EMAIL: "test@halyard.example",
};

/** Creates a temporary repository with the files of this work tree, committed on main. */
export function givenRepository() {
  const root = mkdtempSync(join(tmpdir(), "halyard-release-"));
  cpSync(projectRoot, root, {
    recursive: true,
    filter: (source) => !notCopied.has(basename(source)),
  });
  symlinkSync(join(projectRoot, "node_modules"), join(root, "node_modules"));

  const run = (command: string, ...args: string[]) =>
    execFileSync(command, args, { cwd: root, env, encoding: "utf8", stdio: "pipe" }).trimEnd();
  const read = (path: string) => readFileSync(join(root, path), "utf8");
  const write = (path: string, text: string) => writeFileSync(join(root, path), text);
  const commit = (message: string) => {
    run("git", "add", "--all");
    run("git", "commit", "--quiet", "--allow-empty", "--message", message);
  };

  run("git", "init", "--quiet", "--initial-branch", "main");
  write(".git/info/exclude", "node_modules\n");
  commit("files of the work tree");

  return {
    root,
    run,
    read,
    write,
    commit,
    release(...args: string[]) {
      const { status, stdout, stderr } = spawnSync(
        process.execPath,
        ["deploy/release/src/main.ts", ...args],
        { cwd: root, env, encoding: "utf8" },
      );
      return { status, stdout, stderr };
    },
    remove: () => rmSync(root, { recursive: true, force: true }),
  };
}
