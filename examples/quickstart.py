"""Rank a rare class, choose C by cross-validated AUC, and say how sure we are of the result."""

from sklearn.datasets import make_classification
from sklearn.model_selection import GridSearchCV, train_test_split

from aucmax import KernelAUCClassifier, LinearAUCClassifier
from aucmax.metrics import compare_roc_auc, roc_auc_interval

X, y = make_classification(
    6000, 12, n_informative=6, n_clusters_per_class=4, weights=[0.95], random_state=0
)
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)

search = GridSearchCV(
    KernelAUCClassifier(n_landmarks=400, landmarks="class-kmeans", random_state=0),
    {"C": [0.3, 3.0, 30.0]},
    scoring="roc_auc",
    cv=3,
).fit(X_train, y_train)
linear = LinearAUCClassifier().fit(X_train, y_train)

scores = search.decision_function(X_test)
auc, low, high, _ = roc_auc_interval(y_test, scores)
print(f"C = {search.best_params_['C']}: AUC {auc:.4f} ({low:.4f} to {high:.4f})")

test = compare_roc_auc(y_test, scores, linear.decision_function(X_test))
print(f"linear: AUC {test.auc_b:.4f}, difference {test.difference:+.4f}, p = {test.p_value:.2g}")
