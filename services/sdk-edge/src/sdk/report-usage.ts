import { randomUUID } from "node:crypto";
import { type EvaluationsReported, sdkReportUsage } from "@halyard/contracts";
import {
  checkIdempotencyKey,
  compileInputChecks,
  createProblem,
  isProblem,
  type Problem,
} from "@halyard/service";
import type { Exchange } from "../http/exchange.ts";
import type { EdgeRoute } from "../http/routes.ts";
import { decideReport } from "../usage/decide-report.ts";
import { reportIdOf } from "../usage/report-id.ts";
import type { SdkParts } from "./sdk-parts.ts";

/** The route for evaluations that applications made themselves. It does not count as a request. */
export function reportUsageRoute(parts: SdkParts): EdgeRoute {
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

async function respond(parts: SdkParts, exchange: Exchange): Promise<void> {
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

function readReport({ views }: SdkParts, exchange: Exchange): EvaluationsReported | Problem {
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
    flagIdOf: (flagKey) => view.find(flagKey)?.entry.flag_id,
    nowMs,
  });
}

const accepted = JSON.stringify({ accepted: true });
const notStored = createProblem(
  "SERVER_002",
  "The report may not have been stored; send it again with the same Idempotency-Key.",
);
