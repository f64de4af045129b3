import { useParams } from "@tanstack/react-router";
import { SearchX } from "lucide-react";
import { useState } from "react";
import { ApiProblem } from "../api/problem.ts";
import type { ChangeRequest } from "../api/schema.d.ts";
import { usePeople } from "../changes/people.ts";
import { changed } from "../state/difference.ts";
import { Differences } from "../state/differences.tsx";
import { Badge } from "../ui/badge.tsx";
import { Button, ButtonLink } from "../ui/button.tsx";
import { localTime } from "../ui/dates.ts";
import { LinkedText } from "../ui/linked-text.tsx";
import { Page } from "../ui/page.tsx";
import { Card, EmptyState, Warning } from "../ui/panels.tsx";
import { QueryView } from "../ui/query-view.tsx";
import { Time } from "../ui/time.tsx";
import styles from "./change-requests.module.css";
import { ProposedChanges } from "./proposed-changes.tsx";
import { RequestLog } from "./request-log.tsx";
import { useRequest } from "./request-queries.ts";
import {
  currentApprovals,
  isEnded,
  missingText,
  neededText,
  statusTexts,
} from "./request-status.ts";
import { RequestSteps } from "./request-steps.tsx";

/** A change request: what it changes, its review, and what happened to it. */
export function RequestPage() {
  const { requestId } = useParams({ from: "/change-requests/$requestId" });
  const query = useRequest(requestId);
  const { error } = query;
  // The API rejects a text that is no id with 400.
  if (error instanceof ApiProblem && (error.status === 404 || error.status === 400))
    return <MissingRequest />;
  return (
    <QueryView query={query} label="Loading the change request">
      {(request) => <LoadedRequest key={requestId} request={request} />}
    </QueryView>
  );
}

/** Keeps the content that the reader has looked at, because an approval must not be of another one. */
function LoadedRequest({ request }: { request: ChangeRequest }) {
  const [seen, setSeen] = useState(request);
  const { label, tone } = statusTexts[request.status];
  const nameOf = usePeople([
    request.created_by,
    ...(request.closed_by === null ? [] : [request.closed_by]),
    ...request.approvals.map(({ user_id }) => user_id),
  ]);
  return (
    <Page
      title={request.title}
      back={{ link: { to: "/change-requests" }, label: "Change requests" }}
      facts={
        <>
          <Badge tone={tone}>{label}</Badge>
          {request.needed.map(({ environment_id, environment_name: name }) => (
            <Badge key={environment_id} tone="accent">
              {name}
            </Badge>
          ))}
          <span>
            By {nameOf(request.created_by)}, <Time at={request.created_at} />
          </span>
        </>
      }
    >
      {!isEnded(request) && seen.content_hash !== request.content_hash && (
        <OtherContent seen={seen} request={request} onSeen={() => setSeen(request)} />
      )}
      {!isEnded(request) && request.differences.length > 0 && <Stale request={request} />}
      <Outcome request={request} nameOf={nameOf} />
      {request.reason !== "" && (
        <Card title="Reason">
          <p className={styles.summary}>
            <LinkedText text={request.reason} />
          </p>
        </Card>
      )}
      <Review request={request} seen={seen} nameOf={nameOf} onSeen={setSeen} />
      <ProposedChanges changes={request.changes} />
      <RequestLog request={request} />
    </Page>
  );
}

type NameOf = (id: string) => string;

type OtherContentProps = { seen: ChangeRequest; request: ChangeRequest; onSeen: () => void };

/** Says that the content has changed since the reader looked at it. */
function OtherContent({ seen, request, onSeen }: OtherContentProps) {
  const timeOf = ({ apply_at: at }: ChangeRequest) =>
    at === null ? "after the approvals" : localTime(new Date(at));
  const differences = [
    ...changed("Changes", seen.summary, request.summary),
    ...changed("Time", timeOf(seen), timeOf(request)),
  ];
  return (
    <Warning
      action={
        <Button size="small" onPress={onSeen}>
          I have looked at it
        </Button>
      }
    >
      <p>
        <b>The content has changed since you opened this page.</b> Look at the new content below
        before you approve it.
      </p>
      {differences.length > 0 && <Differences items={differences} label="Changed content" />}
    </Warning>
  );
}

function Stale({ request: { differences } }: { request: ChangeRequest }) {
  return (
    <Warning>
      <p>
        <b>Stale:</b> something that this request is based on has changed since, so it is not
        applied. Rebase it on the current values; it needs new approvals then.
      </p>
      <ul aria-label="Changed since">
        {differences.map((difference) => (
          <li key={difference}>{difference}</li>
        ))}
      </ul>
    </Warning>
  );
}

/** Says how a request ended, and a bypass in red. */
function Outcome({ request, nameOf }: { request: ChangeRequest; nameOf: NameOf }) {
  const { status, closed_by: closer, comment, bypass_reason: bypass, applied_at: at } = request;
  if (bypass !== null)
    return (
      <div className={styles.alarm}>
        <p>
          <b>Applied without the approvals</b> by{" "}
          {closer === null ? "the operator" : nameOf(closer)}
          {at !== null && (
            <>
              , <Time at={at} />
            </>
          )}
        </p>
        <p>Reason: {bypass}</p>
      </div>
    );
  if (!isEnded(request)) return null;
  return (
    <p>
      <b>{statusTexts[status].label}</b>
      {closer !== null && ` by ${nameOf(closer)}`}
      {status === "applied" && closer === null && " at its time"}
      {comment !== null && comment !== "" && `: ${comment}`}
    </p>
  );
}

type ReviewProps = {
  request: ChangeRequest;
  seen: ChangeRequest;
  nameOf: NameOf;
  onSeen: (request: ChangeRequest) => void;
};

/** The approvals that the request has and needs, and the steps that the reader can take. */
function Review({ request, seen, nameOf, onSeen }: ReviewProps) {
  const { needed, apply_at: at } = request;
  const approvals = currentApprovals(request);
  const missing = missingText(request);
  if (isEnded(request) && approvals.length === 0) return null;
  return (
    <Card title="Review">
      <div className={styles.stack}>
        {!isEnded(request) && (
          <>
            <p>{needed.map(neededText).join(" · ") || "No environment of it is protected."}</p>
            {missing !== undefined && <p className={styles.note}>{missing}</p>}
          </>
        )}
        {approvals.length > 0 && (
          <ul aria-label="Approvals">
            {approvals.map(({ user_id, at: approvedAt }) => (
              <li key={user_id}>
                Approved by {nameOf(user_id)}, <Time at={approvedAt} />
              </li>
            ))}
          </ul>
        )}
        {at !== null && request.applied_at === null && (
          <p>
            Once approved, it is applied at <b>{localTime(new Date(at))}</b>.
          </p>
        )}
        {!isEnded(request) && (
          <RequestSteps request={request} seenHash={seen.content_hash} onSeen={onSeen} />
        )}
      </div>
    </Card>
  );
}

function MissingRequest() {
  return (
    <Page title="No such change request">
      <EmptyState
        icon={SearchX}
        title="There is no such change request in this project"
        action={<ButtonLink to="/change-requests">All change requests</ButtonLink>}
      >
        Drafts are deleted after seven days. If the request belongs to another project, choose that
        project in the sidebar.
      </EmptyState>
    </Page>
  );
}
