import { randomUUID } from "node:crypto";
import { type EvaluationsReported, sdkReportUsage } from "@halyard/contracts";
import {
  checkIdempotencyKey,
  compileInputChecks,
  createProblem,
  isProblem,
  type Problem,
} from "@halyard/http";
import { decideReport } from "../../usage/decide-report.ts";
import { reportIdOf } from "../../usage/publish-report.ts";
import type { EdgeParts } from "../edge-parts.ts";
import type { EdgeRoute } from "../edge-route.ts";
import type { SdkExchange } from "../hot-path.ts";

/** The route for evaluations that applications made themselves. It does not count as a request. */
export function reportUsageRoute(parts: EdgeParts): EdgeRoute {
  return {
    contract: sdkReportUsage,
    name: "usage",
    isFree: true,
    authenticate: parts.byBearer,
    respond: (exchange) => {
      respond(parts, exchange).catch((error) => exchange.fail(error));
    },
  };
}

async function respond(parts: EdgeParts, exchange: SdkExchange): Promise<void> {
  const report = readReport(parts, exchange);
  if (isProblem(report)) {
    exchange.reject(report);
    return;
  }
  const outcome = await parts.publishReport?.(exchange.key.organizationId, report);
  if (exchange.response.destroyed) return;
  if (outcome === "stored") exchange.answerJson(202, accepted);
  else exchange.reject(notStored);
}

const checks = compileInputChecks(sdkReportUsage);

function readReport({ views }: EdgeParts, exchange: SdkExchange): EvaluationsReported | Problem {
  const query = checks.query(exchange.query, exchange.target);
  if (isProblem(query)) return query;
  const body = checks.body(exchange.body);
  if (isProblem(body)) return body;
  const { key, nowMs } = exchange;
  const idempotencyKey = exchange.headers["idempotency-key"];
  const isGiven = typeof idempotencyKey === "string";
  const invalid = isGiven ? checkIdempotencyKey(idempotencyKey) : undefined;
  if (invalid !== undefined) return invalid;
  const view = views.of(key.environmentId);
  return decideReport(body.value, {
    reportId: isGiven ? reportIdOf(key.id, idempotencyKey) : randomUUID(),
    environmentId: key.environmentId,
    find: (flagKey) => view.find(flagKey)?.entry,
    nowMs,
  });
}

const accepted = JSON.stringify({ accepted: true });
const notStored = createProblem(
  "SERVER_002",
  "The report may not have been stored; send it again with the same Idempotency-Key.",
);
