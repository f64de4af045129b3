import { Link } from "@tanstack/react-router";
import styles from "./history.module.css";

type CauseLinkProps = { causeId: string; bypassed: ReadonlySet<string> };

/** Names and links the change request that made a change. It is red if it was applied without its approvals. */
export function CauseLink({ causeId, bypassed }: CauseLinkProps) {
  const isBypass = bypassed.has(causeId);
  return (
    <Link
      to="/change-requests/$requestId"
      params={{ requestId: causeId }}
      className={isBypass ? (styles.bypass ?? "") : ""}
    >
      {isBypass ? "by a change request without its approvals" : "by a change request"}
    </Link>
  );
}
