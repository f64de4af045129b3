import type { ServiceProcess } from "@halyard/testing";
import {
  awaitReady,
  type Dispatcher,
  type Management,
  type Metering,
  type Scheduler,
  type System,
} from "./system.ts";

/** Kills a process without a shutdown, and removes it from the processes in service. */
export async function killOne<T extends Management | Scheduler | Dispatcher | Metering>(
  inService: T[],
): Promise<T> {
  const killed = inService.shift();
  if (killed === undefined) throw new Error("no process is in service");
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

/**
 * Replaces a process as a rolling update does. It is removed from the processes in service before SIGTERM, and its
 * successor starts on the same address.
 */
export async function replaceOne<T extends ServiceProcess>(
  inService: T[],
  old: T,
  startSuccessor: (listen: { port: string }) => Promise<T>,
): Promise<void> {
  inService.splice(inService.indexOf(old), 1);
  await stopInOrder(old);
  const process = await startSuccessor({ port: new URL(old.url).port });
  await awaitReady({ name: "the successor", process });
}

/** Replaces the processes of a service one after another. */
export async function replaceEach<T extends ServiceProcess>(
  inService: T[],
  startSuccessor: (listen: { port: string }) => Promise<T>,
): Promise<void> {
  for (const old of [...inService]) await replaceOne(inService, old, startSuccessor);
}

export async function stopInOrder(process: ServiceProcess): Promise<void> {
  const exit = await process.stop();
  if (exit !== 0) throw new Error(`A process ended with ${exit}:\n${process.log()}`);
}
