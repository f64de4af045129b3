import {
  createRootRoute,
  createRoute,
  createRouter,
  lazyRouteComponent,
  redirect,
  retainSearchParams,
} from "@tanstack/react-router";
import { readRequestSearch } from "./change-requests/request-search.ts";
import { readCompareSearch } from "./compare/compare-search.ts";
import { FlagsPage } from "./flag-list/flags-page.tsx";
import { readFlagSearch } from "./flags/flag-search.ts";
import { readHistorySearch } from "./history/history-search.ts";
import { KeyLayout } from "./shell/key-layout.tsx";
import { NotFound } from "./shell/not-found.tsx";
import { OperatorLayout } from "./shell/operator-layout.tsx";
import { PageError } from "./shell/page-error.tsx";
import { readUsageSearch } from "./usage/usage-search.ts";
import { readDeliverySearch } from "./webhooks/delivery-status.ts";

/** The name of the chosen environment. All pages keep it. */
type EnvironmentSearch = { env?: string | undefined };

const text = (value: unknown) => (typeof value === "string" && value !== "" ? value : undefined);

/** Loads the code of a page when the page is opened. */
const page = lazyRouteComponent;

const keyRoot = createRootRoute({
  component: KeyLayout,
  notFoundComponent: NotFound,
  validateSearch: (search): EnvironmentSearch => ({ env: text(search.env) }),
  search: { middlewares: [retainSearchParams<EnvironmentSearch>(["env"])] },
});
const ofKeys = { getParentRoute: () => keyRoot };

const flagRoute = createRoute({
  ...ofKeys,
  path: "/flags/$flagKey",
  component: page(() => import("./flags/flag-page.tsx"), "FlagPage"),
});
const ofFlag = { getParentRoute: () => flagRoute };
const flagTabs = [
  createRoute({
    ...ofFlag,
    path: "/",
    component: page(() => import("./targeting/targeting-tab.tsx"), "TargetingTab"),
  }),
  createRoute({
    ...ofFlag,
    path: "/variations",
    component: page(() => import("./flags/variations-tab.tsx"), "VariationsTab"),
  }),
  createRoute({
    ...ofFlag,
    path: "/schedule",
    component: page(() => import("./schedules/schedule-tab.tsx"), "ScheduleTab"),
  }),
  createRoute({
    ...ofFlag,
    path: "/history",
    component: page(() => import("./history/history-tab.tsx"), "HistoryTab"),
  }),
  createRoute({
    ...ofFlag,
    path: "/settings",
    component: page(() => import("./flags/settings-tab.tsx"), "SettingsTab"),
  }),
] as const;

/**
 * The pages of a server key. The first page is in the main bundle; the others are loaded when they are opened. The list
 * is not an argument of `addChildren`, because its routes would have the parameter's type, which knows no paths.
 */
const keyPages = [
  createRoute({
    ...ofKeys,
    path: "/",
    beforeLoad: () => {
      throw redirect({ to: "/flags" });
    },
  }),
  createRoute({ ...ofKeys, path: "/flags", validateSearch: readFlagSearch, component: FlagsPage }),
  flagRoute.addChildren(flagTabs),
  createRoute({
    ...ofKeys,
    path: "/audiences",
    component: page(() => import("./audiences/audiences-page.tsx"), "AudiencesPage"),
  }),
  createRoute({
    ...ofKeys,
    path: "/audiences/$audienceKey",
    component: page(() => import("./audiences/audience-page.tsx"), "AudiencePage"),
  }),
  createRoute({
    ...ofKeys,
    path: "/schedules",
    component: page(() => import("./schedules/schedules-page.tsx"), "SchedulesPage"),
  }),
  createRoute({
    ...ofKeys,
    path: "/compare",
    validateSearch: readCompareSearch,
    component: page(() => import("./compare/compare-page.tsx"), "ComparePage"),
  }),
  createRoute({
    ...ofKeys,
    path: "/history",
    validateSearch: readHistorySearch,
    component: page(() => import("./history/history-page.tsx"), "HistoryPage"),
  }),
  createRoute({
    ...ofKeys,
    path: "/webhooks",
    component: page(() => import("./webhooks/webhooks-page.tsx"), "WebhooksPage"),
  }),
  createRoute({
    ...ofKeys,
    path: "/webhooks/$webhookId",
    validateSearch: readDeliverySearch,
    component: page(() => import("./webhooks/webhook-page.tsx"), "WebhookPage"),
  }),
  createRoute({
    ...ofKeys,
    path: "/usage",
    validateSearch: readUsageSearch,
    component: page(() => import("./usage/usage-page.tsx"), "UsagePage"),
  }),
  createRoute({
    ...ofKeys,
    path: "/keys",
    component: page(() => import("./keys/keys-page.tsx"), "KeysPage"),
  }),
  createRoute({
    ...ofKeys,
    path: "/connect",
    component: page(() => import("./connect/connect-page.tsx"), "ConnectPage"),
  }),
  createRoute({
    ...ofKeys,
    path: "/environments",
    component: page(() => import("./environments/environments-page.tsx"), "EnvironmentsPage"),
  }),
  createRoute({
    ...ofKeys,
    path: "/change-requests",
    validateSearch: readRequestSearch,
    component: page(() => import("./change-requests/requests-page.tsx"), "RequestsPage"),
  }),
  createRoute({
    ...ofKeys,
    path: "/change-requests/$requestId",
    component: page(() => import("./change-requests/request-page.tsx"), "RequestPage"),
  }),
  createRoute({
    ...ofKeys,
    path: "/you",
    component: page(() => import("./account/you-page.tsx"), "YouPage"),
  }),
  createRoute({
    ...ofKeys,
    path: "/sign-in",
    component: page(() => import("./account/signed-in-already.tsx"), "SignedInAlready"),
  }),
  createRoute({
    ...ofKeys,
    path: "/people",
    component: page(() => import("./people/people-page.tsx"), "PeoplePage"),
  }),
] as const;

export function createKeyRouter() {
  return createRouter({
    routeTree: keyRoot.addChildren(keyPages),
    defaultPreload: "intent",
    defaultErrorComponent: PageError,
    scrollRestoration: true,
  });
}

const operatorRoot = createRootRoute({ component: OperatorLayout, notFoundComponent: NotFound });
const ofOperator = { getParentRoute: () => operatorRoot };

/** An operator can sign in at the address of a page for keys. */
const pagesOfKeys = (
  [
    "flags",
    "audiences",
    "schedules",
    "compare",
    "history",
    "webhooks",
    "usage",
    "keys",
    "connect",
    "environments",
    "change-requests",
    "you",
    "people",
  ] as const
).map((name) =>
  createRoute({
    ...ofOperator,
    path: `/${name}/$`,
    beforeLoad: () => {
      throw redirect({ to: "/" });
    },
  }),
);

const operatorPages = [
  createRoute({
    ...ofOperator,
    path: "/",
    component: page(() => import("./operator/organizations-page.tsx"), "OrganizationsPage"),
  }),
  createRoute({
    ...ofOperator,
    path: "/organizations/$organizationId",
    component: page(() => import("./operator/organization-page.tsx"), "OrganizationPage"),
  }),
  createRoute({
    ...ofOperator,
    path: "/organizations/$organizationId/projects/$projectId",
    component: page(() => import("./operator/project-page.tsx"), "ProjectPage"),
  }),
  createRoute({
    ...ofOperator,
    path: "/status",
    component: page(() => import("./operator/status-page.tsx"), "StatusPage"),
  }),
  ...pagesOfKeys,
] as const;

export function createOperatorRouter() {
  return createRouter({
    routeTree: operatorRoot.addChildren(operatorPages),
    defaultPreload: "intent",
    defaultErrorComponent: PageError,
  });
}

/** Links compile only if one of the routers has their page. */
declare module "@tanstack/react-router" {
  interface Register {
    router: ReturnType<typeof createKeyRouter> | ReturnType<typeof createOperatorRouter>;
  }
}
