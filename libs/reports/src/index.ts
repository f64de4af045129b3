export { createReporters, type FollowedReports, followReports } from "./follow-reports.ts";
export { createOpenStreams, followOpenStreams, type OpenStreams } from "./open-streams.ts";
export { publishLastSeen } from "./publish-last-seen.ts";
export { reportStatus } from "./report-status.ts";
