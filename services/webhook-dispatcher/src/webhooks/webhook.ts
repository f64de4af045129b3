import type { EventName } from "@halyard/contracts";
import type { SealedSecret } from "../secrets/secret-box.ts";

/** A URL of a customer that is told of events of one project, in all its environments. */
export type Webhook = {
  id: string;
  organizationId: string;
  projectId: string;
  /** Unique in the project. */
  name: string;
  /** As the customer wrote it. */
  url: string;
  events: EventName[];
  /** Nothing is made for a webhook that is disabled, but a person may still redeliver and test. */
  enabled: boolean;
  /** Null: deliveries are not signed. */
  secret: SealedSecret | null;
  /** The one before, for the Standard Webhooks signatures. It may have ended: whoever signs looks. */
  previousSecret: (SealedSecret & { endsAt: Date }) | null;
  createdAt: Date;
  updatedAt: Date;
};
