import { isThorough } from "@halyard/testing";
import {
  awaitEdgesAgree,
  awaitSettled,
  awaitSnapshot,
  faultsOfAnswers,
  faultsOfLog,
  faultsOfSnapshot,
} from "../checks/agreement.ts";
import type { System } from "../system/system.ts";
import { createTenant, type Tenant } from "../system/tenancy.ts";
import {
  type ChangeStream,
  type CreatedFlag,
  createFlags,
  ladderKeys,
  streamChanges,
} from "../traffic/changes.ts";
import { type Watcher, watch } from "../traffic/watcher.ts";

/**
 * One scenario in a running system: a tenant, a client that watches every edge from the beginning, and changes during a
 * fault. At the end, the scenario checks all guarantees.
 */
export type Chapter = {
  tenant: Tenant;
  ladder: readonly CreatedFlag[];
  watcher: Watcher;
  /** Starts a stream of changes through the management processes that are in service. */
  change(options?: { pauseMs?: number }): ChangeStream;
  /** Waits until all work has finished. Returns descriptions of everything that violates a guarantee. */
  faults(): Promise<string[]>;
};

const defaultSteps = isThorough ? 120 : 60;
const flippedFlags = 6;
const defaultPauseMs = 15;

export async function beginChapter(
  system: System,
  options: { name: string; steps?: number },
): Promise<Chapter> {
  const [management] = system.managements;
  if (management === undefined) throw new Error("a chapter needs a management process");
  const tenant = await createTenant(management.url, { name: options.name });
  const ladder = await createFlags(
    management.url,
    tenant.serverKey,
    ladderKeys(options.steps ?? defaultSteps),
  );
  const flippedKeys = Array.from({ length: flippedFlags }, (_, index) => `flipped-${index}`);
  const flipped = await createFlags(management.url, tenant.serverKey, flippedKeys);
  const environment = { environmentId: tenant.environmentId, key: tenant.clientKey };
  const { sql, edges, nats } = system;
  await awaitEdgesAgree({ sql, edges, ...environment });
  const watcher = watch({ edges, key: tenant.clientKey, flags: ladder.map(({ key }) => key) });
  const streams: ChangeStream[] = [];
  const close = async () => {
    await Promise.allSettled(streams.map((stream) => stream.stop()));
    await watcher.stop();
  };
  system.endsWithSystem(close);

  return {
    tenant,
    ladder,
    watcher,
    change({ pauseMs = defaultPauseMs } = {}) {
      const stream = streamChanges({
        managementUrls: () => system.managements.map(({ url }) => url),
        serverKey: tenant.serverKey,
        ladder,
        flipped,
        pauseMs,
      });
      streams.push(stream);
      return stream;
    },
    async faults() {
      await Promise.all(streams.map((stream) => stream.stop()));
      await awaitSettled(sql);
      await awaitSnapshot(nats.url);
      await awaitEdgesAgree({ sql, edges, ...environment });
      const acknowledged = streams.flatMap((stream) => stream.acknowledged);
      const deleted = streams.flatMap((stream) => stream.deleted);
      const found = [
        ...(await faultsOfSnapshot(sql, nats.url)),
        ...(await faultsOfLog(sql, nats.url)),
        ...(await faultsOfAnswers(nats.url, acknowledged, deleted)),
      ];
      // The watcher stops last, so that it observes the edges until all work has finished.
      await watcher.stop();
      return [...watcher.faults, ...found];
    },
  };
}
