/** A product of an organization that has flags. It never changes. */
export type Project = { id: string; organizationId: string; name: string; createdAt: Date };
