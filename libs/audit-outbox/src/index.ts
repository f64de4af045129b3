export { startPublishingAudit } from "./publish-audit.ts";
export { writeAudit } from "./write-audit.ts";
