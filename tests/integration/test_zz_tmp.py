import threading, time
def test_a(foreign, scope):
    foreign.create(scope,'s',segments=2)
    assert foreign.write(scope,'s',events=1000,keys=7).events==1000
    r=foreign.read(scope,'s'); assert r.clean and r.events==1000
def test_auth(standalone_auth, foreign_for):
    admin, reader = standalone_auth.users
    f=foreign_for(standalone_auth.controller_uri, admin)
    f.create('x','s',segments=2)
    f.write('x','s',events=1000,keys=7)
    assert f.read('x','s').events==1000
    g=foreign_for(standalone_auth.controller_uri, reader)
    assert g.visible('x','s').events==1000
    import pytest
    from localstore import ForeignClientError
    with pytest.raises(ForeignClientError) as e: g.create('x','t')
    print(e.value)
    with pytest.raises(ForeignClientError) as e: g.read('x','s')
    print(e.value)
def test_deadline(foreign, scope):
    import pytest
    from localstore import LocalStoreError
    foreign.create(scope,'s')
    with pytest.raises(LocalStoreError) as e: foreign.write(scope,'s',events=10000000,seconds=2)
    print(e.value)
    assert foreign.create(scope,'s2')
def test_cluster_thread(cluster):
    t=threading.Thread(target=lambda: (cluster.kill('bookie'), cluster.restart('bookie'))); t.start(); t.join(); cluster.wait_ready()
    time.sleep(2)
    assert cluster.processes['bookie'].alive and cluster.serves()
def test_sleep(standalone, standalone_auth, cluster, foreign):
    import os
    if os.environ.get('HANG'): time.sleep(100)
