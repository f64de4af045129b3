/**
 * Keeps this process awake while it waits for responses. On one machine, the sender pays for waking a
 * sleeping process, and a slower server pays more often. Clients on other machines do not cause this cost.
 * `hasWorked` returns whether there was work since the last call. The CPU time of turns without work is the
 * cost of staying awake, and is subtracted from the generator's own.
 */
export type Awake = { idleCpuMs(): number; stop(): void };

export function stayAwake(hasWorked: () => boolean): Awake {
  let idleCpuMs = 0;
  let turnedMs = ownCpuMs();
  let next = setImmediate(turn);

  function turn(): void {
    const cpuMs = ownCpuMs();
    if (!hasWorked()) idleCpuMs += cpuMs - turnedMs;
    turnedMs = cpuMs;
    next = setImmediate(turn);
  }

  return { idleCpuMs: () => idleCpuMs, stop: () => clearImmediate(next) };
}

function ownCpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e3;
}
