import { type Answer, answer, stringify } from "@halyard/http";

/** A page of a list, and whether there are further items. */
export type Page<Item> = { items: readonly Item[]; more: boolean };

/** Reads the page after an item; the first page without one. */
type ReadPage<Item> = (after: Item | undefined) => Promise<Page<Item>>;

/**
 * Lists all items, and writes the response while it reads them. Each page is a separate short statement, which runs when
 * the caller has received the previous page. So a slow caller holds neither a database connection nor a transaction,
 * and management buffers one or two pages. The first page is read before the response begins, so that an outage is
 * answered with 503.
 *
 * The pages are not one snapshot of the database. Positions in a list never change, so an item that exists during the
 * whole request is listed exactly once. An item that is created, changed or deleted meanwhile is listed as it is when
 * its page is read.
 */
export async function answerAll<Item>(
  name: string,
  readPage: ReadPage<Item>,
  resourceOf: (item: Item) => object,
): Promise<Answer> {
  const first = await readPage(undefined);
  return first.more
    ? answer.inParts(writePages(name, first, readPage, resourceOf))
    : answer.ok({ [name]: first.items.map(resourceOf) });
}

async function* writePages<Item>(
  name: string,
  first: Page<Item>,
  readPage: ReadPage<Item>,
  resourceOf: (item: Item) => object,
): AsyncGenerator<string> {
  const jsonOf = ({ items }: Page<Item>) =>
    items.map((item) => stringify(resourceOf(item))).join(",");
  yield `{${JSON.stringify(name)}:[${jsonOf(first)}`;
  for (let page = first; page.more; ) {
    const last = page.items.at(-1);
    if (last === undefined) break;
    page = await readPage(last);
    if (page.items.length > 0) yield `,${jsonOf(page)}`;
  }
  yield "]}";
}
