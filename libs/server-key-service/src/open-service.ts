import {
  createKeyDirectory,
  createKeyLimits,
  createKeySignatures,
  createLastUsed,
} from "@halyard/api-keys";
import { keyRate, natsServers } from "@halyard/configuration";
import type { ServiceName } from "@halyard/contracts";
import { UnavailableError } from "@halyard/http";
import {
  createCallers,
  createMemberAuthentication,
  createPeopleDirectory,
  createPlaces,
} from "@halyard/people";
import { openDatabase } from "@halyard/postgres";
import { createLogger, createMetrics, runService, type ServiceOptions } from "@halyard/service";
import { createDeletions } from "@halyard/snapshot";
import { startTracing } from "@halyard/tracing";
import type { ServiceConfig } from "./variables.ts";
import type { Workers } from "./workers.ts";

/**
 * Opens what every service with a PostgreSQL schema and server keys needs. The service adds its workers and its
 * application, and then runs.
 */
export async function openService(service: ServiceName, config: ServiceConfig) {
  await startTracing(service, config);
  const logger = createLogger({ service, level: config.LOG_LEVEL });
  const metrics = createMetrics({ service });
  const database = openDatabase({
    url: config.POSTGRES_URL,
    name: service,
    maxConnections: config.POSTGRES_MAX_CONNECTIONS,
    logger,
  });
  const signatures = createKeySignatures({
    ...{ publicKeys: config.SIGNING_PUBLIC_KEYS, metrics, logger },
  });
  const keys = createKeyDirectory(signatures);
  const people = createPeopleDirectory();
  const places = createPlaces();
  const lastUsed = createLastUsed();
  const nats = natsServers(config);
  return {
    ...{ sql: database.sql, keys, people, places, signatures, lastUsed, nats, metrics, logger },
    deletions: createDeletions(),
    sweep: { nowMs: Date.now },
    /** Returns the options of the application that do not depend on its routes. */
    appOptions: (workers: Workers) => ({
      authenticate: createMemberAuthentication({
        verify(text, nowMs) {
          assertLoaded(workers);
          return keys.verify(text, nowMs);
        },
        callers: createCallers({
          people: {
            ...people,
            session(cookie, nowMs) {
              assertLoaded(workers);
              return people.session(cookie, nowMs);
            },
            places,
          },
          publicUrl: config.PUBLIC_URL === undefined ? undefined : new URL(config.PUBLIC_URL),
          nowMs: Date.now,
        }),
        limits: createKeyLimits(keyRate(config)),
        lastUsed,
        operatorTokenDigest: config.OPERATOR_TOKEN_DIGEST,
        nowMs: Date.now,
      }),
      trustedProxies: config.TRUSTED_PROXIES,
      checkAnswers: config.HALYARD_MODE !== "production",
    }),
    /** Runs the service until it is stopped. The workers stop before the parts in `close`. */
    run: ({
      workers,
      close,
      ...options
    }: Pick<ServiceOptions, "app" | "drain" | "close"> & { workers: Workers }) =>
      runService({
        ...{ ...options, config, metrics, logger },
        readiness: () => ({ ready: database.isUp() && workers.isLoaded(), ...workers.details() }),
        close: [database.close, ...close, workers.stop],
      }),
  };
}

function assertLoaded(workers: Workers): void {
  if (workers.isLoaded()) return;
  throw new UnavailableError("The service has not loaded keys and people yet; retry after 1 s.");
}
