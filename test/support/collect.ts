/** All that comes, in order. */
export async function collect<Item>(source: AsyncIterable<Item>): Promise<Item[]> {
    const items: Item[] = [];
    for await (const item of source) {
        items.push(item);
    }

    return items;
}
