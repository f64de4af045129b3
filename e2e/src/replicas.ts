import {
  awaitReady,
  type Dispatcher,
  type Management,
  type Metering,
  type Scheduler,
  type System,
} from "./system.ts";

/** Kills a process with no time for last words, and takes it out of those that are in service. */
export async function killOne<T extends Management | Scheduler | Dispatcher | Metering>(
  inService: T[],
): Promise<T> {
  const killed = inService.shift();
  if (killed === undefined) throw new Error("none of them is in service");
  await killed.kill();
  return killed;
}

export async function startReadyScheduler(system: System): Promise<Scheduler> {
  const scheduler = await system.startScheduler();
  await awaitReady({ name: "a scheduler", process: scheduler });
  return scheduler;
}

export async function startReadyDispatcher(system: System): Promise<Dispatcher> {
  const dispatcher = await system.startDispatcher();
  await awaitReady({ name: "a dispatcher", process: dispatcher });
  return dispatcher;
}

export async function startReadyMetering(system: System): Promise<Metering> {
  const metering = await system.startMetering();
  await awaitReady({ name: "a metering", process: metering });
  return metering;
}
