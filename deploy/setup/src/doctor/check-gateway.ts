import { checkServerCertificate } from "./check-certificates.ts";
import { clockFinding, type Finding, findingsOf, ok, problem } from "./finding.ts";

const timeoutMs = 5_000;

/** Checks the address that clients use, and its certificate. */
export async function checkGateway(url: URL, nowMs: () => number): Promise<Finding[]> {
  const findings = await Promise.all([
    checkAnswer(url, nowMs),
    url.protocol === "https:" ? checkServerCertificate(url, nowMs()) : [],
  ]);
  return findings.flat();
}

function checkAnswer(url: URL, nowMs: () => number): Promise<Finding[]> {
  const advice = "Check BASE_URL, and the gateway's log.";
  return findingsOf("gateway", advice, async () => {
    const askedAt = nowMs();
    const response = await fetch(new URL("/readyz", url), {
      signal: AbortSignal.timeout(timeoutMs),
    });
    await response.body?.cancel();
    const date = Date.parse(response.headers.get("date") ?? "");
    const text = `${url.origin} answers ${response.status}`;
    return [
      response.ok
        ? ok("gateway", text)
        : problem("gateway", text, "See docs/runbooks.md#a-process-is-not-ready."),
      // The header has whole seconds.
      ...(Number.isNaN(date) ? [] : [clockFinding("the gateway", offset(date, askedAt, nowMs()))]),
    ];
  });
}

/** Returns the smallest difference that a time in whole seconds allows. */
function offset(date: number, fromMs: number, toMs: number): number {
  if (date > toMs) return date - toMs;
  return Math.min(0, date + 999 - fromMs);
}
