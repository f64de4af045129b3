/**
 * Keeps this process from sleeping while it waits for answers. Waking a sleeping process is work for
 * whoever sends it something: on one machine the server pays for it with every answer, and a slower
 * server more often, because then there is more time to fall asleep. Clients on other machines cost it
 * nothing of the kind, so both servers under comparison are spared it.
 *
 * `hasWorked` says whether anything was done since it was last asked; what was used in turns in which
 * nothing was done is what staying awake costs. That is CPU time, as what it is subtracted from: while
 * others have the core, time passes in which this process is neither awake nor asleep.
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
