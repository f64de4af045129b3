import { fileURLToPath } from "node:url";
import { projectRoot } from "../project-root.ts";

/** The used part of V8's CPU profile. Times are in microseconds of the monotonic clock. */
export type CpuProfile = {
  startTime: number;
  nodes: readonly ProfileNode[];
  samples: readonly number[];
  timeDeltas: readonly number[];
};

type ProfileNode = {
  id: number;
  callFrame: { functionName: string; url: string; lineNumber: number };
};

/** Samples of an idle process. */
const idle = "(idle)";

/**
 * Returns the self time of each function between two times in microseconds, largest first. Names include the
 * file.
 */
export function selfTimes(
  profile: CpuProfile,
  { fromMs, toMs }: { fromMs: number; toMs: number },
): ReadonlyMap<string, number> {
  const names = new Map(profile.nodes.map((node) => [node.id, nameOf(node)]));
  const times = new Map<string, number>();
  let at = profile.startTime;
  for (const [index, id] of profile.samples.entries()) {
    at += profile.timeDeltas[index] ?? 0;
    if (at < fromMs * 1e3 || at > toMs * 1e3) continue;
    const name = names.get(id) ?? "(unknown)";
    // A sample represents the time until the next one.
    const lastedFor = profile.timeDeltas[index + 1] ?? 0;
    if (name !== idle) times.set(name, (times.get(name) ?? 0) + lastedFor);
  }
  return new Map([...times].sort(([, one], [, other]) => other - one));
}

function nameOf({ callFrame }: ProfileNode): string {
  const name = callFrame.functionName === "" ? "(anonymous)" : callFrame.functionName;
  if (callFrame.url === "") return name;
  return `${name} ${fileOf(callFrame.url)}:${callFrame.lineNumber + 1}`;
}

function fileOf(url: string): string {
  if (!url.startsWith("file://")) return url;
  const path = fileURLToPath(url);
  const shortened = path.startsWith(projectRoot) ? path.slice(projectRoot.length) : path;
  return shortened.replace(
    /^\.cache\/(?:stripped-\w+|sdk-\w+\/node_modules)\/|^node_modules\//,
    "",
  );
}
