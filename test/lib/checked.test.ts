import t from 'tap';
import { checked, implementing } from '../../lib/checked.ts';

interface Store {
    get(): string;
    put(): void;
}

t.test('passes an object through as it is', async (t) => {
    const store = new (class implements Store {
        #secret = 'kept';
        get() {
            return this.#secret;
        }
        put() {}
    })();
    const same = checked(implementing<Store>('get', 'put'), store);

    t.equal(same, store);
    t.equal(same.get(), 'kept');
});

t.test('names the function that is missing', async (t) => {
    t.throws(() => checked(implementing<Store>('get', 'put').label('store'), { get() {} }), {
        message: 'store must have the function put',
    });
    t.throws(() => checked(implementing<Store>('get').label('store'), 7), { code: 'INVALID_INPUT' });
});
