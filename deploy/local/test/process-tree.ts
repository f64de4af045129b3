import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { isRunning } from "@halyard/local-backends";

/** Returns a process and its running descendants. */
export function processTreeOf(root: number): number[] {
  const all = process.platform === "linux" ? readFromProc() : readFromPs();
  const found = [root];
  for (const pid of found) {
    const children = all.filter(({ parent }) => parent === pid);
    found.push(...children.map((entry) => entry.pid).filter(isRunning));
  }
  return found;
}

type Entry = { pid: number; parent: number };

function readFromProc(): Entry[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      try {
        const stat = readFileSync(`/proc/${name}/stat`, "utf8");
        const parent = Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]);
        return [{ pid: Number(name), parent }];
      } catch {
        // The process ended after the directory was listed.
        return [];
      }
    });
}

function readFromPs(): Entry[] {
  const lines = execFileSync("ps", ["-A", "-o", "pid=,ppid="], { encoding: "utf8" }).split("\n");
  return lines.map((line) => {
    const [pid = 0, parent = 0] = line.trim().split(/\s+/).map(Number);
    return { pid, parent };
  });
}
