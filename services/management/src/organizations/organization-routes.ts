import * as contract from "@halyard/contracts";
import type { Sql } from "@halyard/postgres";
import {
  type Answer,
  type App,
  answer,
  isRefusal,
  type Refusal,
  registerRoute,
} from "@halyard/service";
import type { Authenticate } from "../access/principal.ts";
import { checkConfirmed } from "../deletion/check-confirmed.ts";
import type { AnswerOnce } from "../idempotency/answer-once.ts";
import type { Writer } from "../outbox/write.ts";
import { organizationResource } from "./organization.ts";
import { createOrganizationChanges, noSuchOrganization } from "./organization-changes.ts";
import { findOrganization, listOrganizations } from "./organization-store.ts";

/** The routes of organizations, which belong to the platform's operator. */
export function registerOrganizationRoutes(
  app: App,
  options: {
    sql: Sql;
    writer: Writer;
    answerOnce: AnswerOnce;
    authenticate: Authenticate;
    plans: Readonly<Record<string, contract.PlanLimits>>;
    now: () => Date;
    newId: () => string;
  },
): void {
  const { sql, writer, answerOnce, authenticate, plans } = options;
  const changes = createOrganizationChanges(options);

  registerRoute(app, contract.createOrganization, {
    authenticate,
    handle: (input, principal) =>
      writer((write) =>
        answerOnce(write, contract.createOrganization, input, principal, async () => {
          const created = await changes.create(write, input.body);
          if (isRefusal(created)) return created;
          return answer.created(
            `/api/v1/organizations/${created.id}`,
            organizationResource(created, plans),
          );
        }),
      ),
  });

  registerRoute(app, contract.listOrganizations, {
    authenticate,
    handle: async () => {
      const organizations = await listOrganizations(sql);
      return answer.ok({
        organizations: organizations.map((each) => organizationResource(each, plans)),
      });
    },
  });

  registerRoute(app, contract.getOrganization, {
    authenticate,
    handle: async ({ params }) => {
      const found = await findOrganization(sql, params.organizationId);
      if (found === undefined) return noSuchOrganization();
      return answer.ok(organizationResource(found, plans));
    },
  });

  registerRoute(app, contract.updateOrganization, {
    authenticate,
    handle: ({ params, body }) =>
      writer(async (write): Promise<Answer | Refusal> => {
        const changed = await changes.update(write, params.organizationId, body);
        if (isRefusal(changed)) return changed;
        return answer.ok(organizationResource(changed, plans));
      }),
  });

  registerRoute(app, contract.deleteOrganization, {
    authenticate,
    handle: ({ params, query }, principal) =>
      checkConfirmed(query.confirm, params.organizationId) ??
      writer(async (write): Promise<Answer | Refusal> => {
        const removed = await changes.remove(write, principal, params.organizationId);
        return isRefusal(removed) ? removed : answer.noContent();
      }),
  });
}
