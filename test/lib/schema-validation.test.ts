import t from 'tap';
import { checked, objectWith, schemaRefusal } from '../../lib/schema-validation.ts';

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
    const same = checked(objectWith<Store>('get', 'put'), store);

    t.equal(same, store);
    t.equal(same.get(), 'kept');
});

t.test('names the function that is missing', async (t) => {
    t.throws(() => checked(objectWith<Store>('get', 'put').label('store'), { get() {} }), {
        message: 'store must have the function put',
    });
    t.throws(() => checked(objectWith<Store>('get').label('store'), 7), { code: 'INVALID_INPUT' });
});

t.test('refuses also what the schema gives no reason for', async (t) => {
    t.match(schemaRefusal({ details: [] }, { subject: 'options' }), {
        code: 'INVALID_INPUT',
        message: 'options: is invalid',
        field: undefined,
    });
});
